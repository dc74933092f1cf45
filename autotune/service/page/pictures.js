// The pictures of a study, one at a time; the address names it.

import { get, studyPath } from "./api.js";
import { fill, h, throttled } from "./dom.js";
import { errorLine } from "./parts.js";
import { pictureBox } from "./plot.js";

const GAP_MS = 3000;

/** Show a study's pictures in `root`. */
export function openPictures(root, { name, here }) {
  const error = errorLine();
  const nav = h("nav", { class: "chips", "aria-label": "Pictures" });
  const title = h("h2", { id: "picture-title" }, "Pictures");
  const place = h("div", {}, h("p", { class: "muted" }, "Loading the pictures …"));
  fill(root, h("section", { class: "card", "aria-labelledby": "picture-title" }, nav, title, error.element, place));
  const controller = new AbortController();
  let pictures = null;
  let wanted = null;
  let box = null;
  let version = null;

  const load = throttled(async () => {
    try {
      const found = await get(studyPath(name, "pictures"), { signal: controller.signal });
      const same = JSON.stringify(found) === JSON.stringify(pictures);
      pictures = found;
      error.show("");
      if (!same) draw();
    } catch (problem) {
      if (problem.name !== "AbortError") error.show(problem.message);
    }
  }, GAP_MS);

  function draw() {
    if (pictures === null) return;
    links();
    const chosen = pictures.find((one) => one.name === wanted) ?? (wanted ? null : pictures[0]);
    if (!chosen) {
      closeBox();
      fill(title, wanted && pictures.length > 0 ? "No such picture" : "No picture yet");
      fill(
        place,
        h(
          "p",
          { class: "muted" },
          "There are pictures as soon as something was measured; which, depends on the study.",
        ),
      );
      return;
    }
    fill(title, chosen.title);
    if (box?.of !== chosen.name) {
      closeBox();
      box = { of: chosen.name, ...pictureBox(name, chosen.name) };
      fill(place, box.element);
    }
    box.update(version);
  }

  // Unchanged links keep their element, and so the focus.
  function links() {
    const known = [...nav.children];
    if (known.map((link) => link.dataset.picture).join() !== pictures.map((one) => one.name).join()) {
      fill(
        nav,
        pictures.map((one) => {
          const old = known.find((link) => link.dataset.picture === one.name);
          return (
            old ??
            h("a", { href: `${here}/pictures/${encodeURIComponent(one.name)}`, data: { picture: one.name } }, one.title)
          );
        }),
      );
    }
    const current = wanted ?? pictures[0]?.name;
    for (const link of nav.children) {
      if (link.dataset.picture === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  function closeBox() {
    box?.close();
    box = null;
  }

  return {
    show([picture]) {
      wanted = picture ?? null;
      draw();
    },
    update(study) {
      if (study.version === version) return;
      version = study.version;
      if (version === 0) {
        // Nothing is stored yet.
        pictures = [];
        draw();
        return;
      }
      load();
      box?.update(version);
    },
    close() {
      load.cancel();
      controller.abort();
      closeBox();
    },
  };
}
