// A picture of a study: fetches, draws and updates it, shows its figures as a table, and saves it as a file.

import { get, studyPath } from "./api.js";
import { LEAST_WIDTH, draw } from "./chart.js";
import { fill, h, s, setText, throttled } from "./dom.js";
import { number } from "./format.js";
import { errorLine, table } from "./parts.js";
import { pointing } from "./pointing.js";
import { savePng, saveSvg } from "./saving.js";

const GAP_MS = 2000;

/** A place for a picture; `draw(figure, label)` draws it, `open(trial)` is called for a clicked trial. */
export function plotArea(title, open = () => {}) {
  const svg = s("svg", { role: "img", "aria-label": "The picture is being drawn" });
  const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
  const plot = h("div", { class: "plot" }, svg, tip);
  const region = h("div", { class: "scroll plots", role: "region", tabindex: "0", "aria-label": title }, plot);
  const pointer = pointing(plot, svg, tip, { redraw, open });
  const resized = new ResizeObserver(() => region.clientWidth !== width && redraw());
  resized.observe(region);
  let figure = null;
  let width = 0;

  function redraw() {
    width = region.clientWidth;
    // A hidden element has no width, so draw when it is shown.
    if (figure === null || width === 0) return;
    const wide = Math.max(width, LEAST_WIDTH);
    plot.style.width = `${wide}px`;
    pointer.over(draw(svg, figure, wide, pointer.zooms));
  }

  return {
    region,
    svg,
    draw(found, label) {
      figure = found;
      svg.setAttribute("aria-label", label);
      redraw();
    },
    close: () => resized.disconnect(),
  };
}

/**
 * A picture of a study. `update(study)` fetches it if the study has changed, and hides it while there is too little to
 * draw; its title leads to `link`; `brief` omits title, description and buttons.
 */
export function pictureBox(study, picture, { brief = false, link = null } = {}) {
  const error = errorLine();
  const trials = `#/studies/${encodeURIComponent(study)}/trials`;
  const area = plotArea("Picture", (trial) => (location.hash = `${trials}/${trial}`));
  const title = h("a", { href: link }, picture);
  const described = h("p", { class: "muted small" });
  const values = h("div", {});
  const details = h(
    "details",
    { on: { toggle: () => details.open && drawTable() } },
    h("summary", {}, "The figures as a table"),
    values,
  );
  const saves = h(
    "p",
    { class: "buttons saves" },
    ...[saveSvg, savePng].map((save) =>
      h(
        "button",
        { type: "button", on: { click: () => save(area.svg, `${study}-${picture}`, about()) } },
        save === saveSvg ? "Save as SVG" : "Save as PNG",
      ),
    ),
  );
  saves.hidden = true;
  const element = h(
    "figure",
    { "aria-busy": "true" },
    brief ? null : h("figcaption", {}, h("h2", {}, title), described),
    error.element,
    area.region,
    h("div", { class: "below" }, details, brief ? null : saves),
  );
  const controller = new AbortController();
  let found = null;
  let version = null;
  let of = null;

  // The line above a saved picture, which has left the page that says of what it is.
  function about() {
    return [found.title, study, of.machine, of.newest.slice(0, 10)].filter(Boolean).join(" · ");
  }

  const load = throttled(async () => {
    try {
      found = await get(studyPath(study, `pictures/${picture}`), { signal: controller.signal });
      error.show("");
      element.hidden = found === null;
      element.setAttribute("aria-busy", "false");
      if (found === null) return;
      element.classList.toggle("wide", found.figure.panels.length > 1);
      setText(title, found.title);
      setText(described, found.description);
      area.region.setAttribute("aria-label", `Picture: ${found.title}`);
      if (details.open) drawTable();
      area.draw(found.figure, `${found.title}: ${found.description}`);
      saves.hidden = false;
    } catch (problem) {
      version = null; // makes the next event try again
      if (problem.name !== "AbortError") error.show(problem.message);
    }
  }, GAP_MS);

  function drawTable() {
    if (found !== null) fill(values, figuresTable(found));
  }

  return {
    element,
    update(now) {
      of = now;
      if (now.version === version) return;
      version = now.version;
      load();
    },
    close() {
      area.close();
      load.cancel();
      controller.abort();
    },
  };
}

function figuresTable({ title, table: { columns, rows } }) {
  const numeric = columns.map(
    (_, at) => rows.length > 0 && rows.every((row) => row[at] === null || typeof row[at] === "number"),
  );
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === "number" && !Number.isInteger(cell) ? number(cell, 5) : (cell ?? "–"))),
  );
  return table(
    `${title}, as a table`,
    columns.map((name, at) => ({ title: String(name), number: numeric[at] })),
    cells,
    { className: "small" },
  );
}
