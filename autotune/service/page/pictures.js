// The pictures of a study, side by side; the address may name one, which then has the whole width.

import { fill, h } from "./dom.js";
import { pictureBox } from "./plot.js";

/** Show a study's pictures in `root`. */
export function openPictures(root, { name, here, study: first }) {
  const nothing = h("p", { class: "card muted" });
  const grid = h("div", { class: "pictures" });
  const boxes = new Map();
  let study = first;
  let wanted = null;
  fill(root, nothing, grid);

  function draw() {
    const shown = wanted === null ? study.pictures : study.pictures.filter((one) => one === wanted);
    nothing.hidden = shown.length > 0;
    nothing.textContent = study.pictures.length > 0 ? "No such picture." : "No picture yet: nothing was measured.";
    grid.classList.toggle("single", wanted !== null);
    for (const [picture, box] of boxes) {
      if (shown.includes(picture)) continue;
      box.close();
      box.element.remove();
      boxes.delete(picture);
    }
    shown.forEach((picture, at) => {
      if (!boxes.has(picture)) {
        const link = wanted === null ? `${here}/pictures/${picture}` : `${here}/pictures`;
        boxes.set(picture, pictureBox(name, picture, { link }));
      }
      const { element, update } = boxes.get(picture);
      // A picture that stays in its place keeps the focus.
      if (grid.children[at] !== element) grid.insertBefore(element, grid.children[at] ?? null);
      update(study);
    });
  }

  function close() {
    for (const box of boxes.values()) box.close();
    boxes.clear();
    fill(grid);
  }

  return {
    show([picture]) {
      if ((picture ?? null) !== wanted) close();
      wanted = picture ?? null;
      draw();
    },
    update(found) {
      study = found;
      draw();
    },
    close,
  };
}
