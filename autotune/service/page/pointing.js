// The pointer in a picture: a point shows its values and opens its trial, dragging zooms, a double-click resets. For the
// keyboard, the table below each picture has the same.

import { s, setText } from "./dom.js";

const NEAR = 18;
const DRAGGED = 6;

/**
 * Follow the pointer over `svg`. `zooms` has the visible range of each panel, `over(panels)` sets their places;
 * `redraw()` redraws, `open(trial)` shows a trial.
 */
export function pointing(plot, svg, tip, { redraw, open }) {
  const zooms = {};
  let panels = [];
  let begun = null;
  let frame = null;

  function place({ clientX, clientY }) {
    const drawn = svg.getBoundingClientRect();
    const across = svg.viewBox.baseVal.width / drawn.width;
    return { x: (clientX - drawn.left) * across, y: (clientY - drawn.top) * across };
  }

  function panelAt({ x, y }) {
    return panels.findIndex(
      ({ box }) =>
        x >= box.left - NEAR &&
        x <= box.left + box.width + NEAR &&
        y >= box.top - NEAR &&
        y <= box.top + box.height + NEAR,
    );
  }

  function spotAt(at) {
    let [nearest, least] = [null, NEAR];
    for (const spot of panels[panelAt(at)]?.spots ?? []) {
      const far = spot.bar ? besideBar(spot, at) : Math.hypot(spot.x - at.x, spot.y - at.y);
      if (far < least) [nearest, least] = [spot, far];
    }
    return nearest;
  }

  function show(spot) {
    tip.hidden = spot === null;
    svg.style.cursor = spot && trialOf(spot) ? "pointer" : "";
    if (spot === null) return;
    setText(tip, spot.text);
    const right = spot.x > svg.viewBox.baseVal.width / 2;
    tip.style.left = right ? "" : `${spot.x + 12}px`;
    tip.style.right = right ? `${plot.clientWidth - spot.x + 12}px` : "";
    tip.style.top = `${Math.max(0, spot.y - 14)}px`;
  }

  function drag(at) {
    const { panel, x, y } = begun;
    const { box } = panels[panel];
    const [left, right] = [x, at.x].sort((one, other) => one - other);
    const [top, bottom] = [y, at.y].sort((one, other) => one - other);
    const low = { x: Math.max(box.left, left), y: Math.max(box.top, top) };
    const high = { x: Math.min(box.left + box.width, right), y: Math.min(box.top + box.height, bottom) };
    return { ...low, width: Math.max(0, high.x - low.x), height: Math.max(0, high.y - low.y) };
  }

  svg.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (begun === null) {
      show(spotAt(at));
      return;
    }
    show(null);
    frame?.remove();
    frame = s("rect", { ...drag(at), class: "zoom" });
    svg.append(frame);
  });
  svg.addEventListener("pointerdown", (event) => {
    const at = place(event);
    // A finger that scrolls the page must not zoom the picture.
    if (event.pointerType !== "mouse" || event.button !== 0 || panelAt(at) < 0) return;
    event.preventDefault();
    begun = { ...at, panel: panelAt(at) };
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerup", (event) => {
    if (begun === null) return;
    const { x, y, width, height } = drag(place(event));
    const { panel } = begun;
    const { x: across, y: down } = panels[panel];
    begun = null;
    frame?.remove();
    if (width < DRAGGED || height < DRAGGED) return;
    zooms[panel] = {
      x: [across.value(x), across.value(x + width)].sort((one, other) => one - other),
      y: [down.value(y), down.value(y + height)].sort((one, other) => one - other),
    };
    redraw();
  });
  svg.addEventListener("click", (event) => {
    const spot = spotAt(place(event));
    // The end of a zoom is a click, too, but not where it began.
    if (spot !== null && trialOf(spot) !== null && frame === null) open(trialOf(spot));
    frame = null;
  });
  svg.addEventListener("dblclick", () => {
    for (const panel of Object.keys(zooms)) delete zooms[panel];
    redraw();
  });
  svg.addEventListener("pointerleave", () => show(null));
  return {
    zooms,
    over(found) {
      panels = found;
      show(null);
    },
  };
}

// "trial 12: 3.4 s ..." -> "12"
function trialOf({ text }) {
  return /^trial (\d+)\b/.exec(text)?.[1] ?? null;
}

// The pointer hits a bar anywhere between its ends.
function besideBar({ x, y, bar }, at) {
  return Math.abs(y - at.y) > bar.half ? NEAR : Math.max(0, bar.start - at.x, at.x - x);
}
