// A picture of a study: fetched, drawn with Plotly, kept up to date without flicker, with its figures as a table.

import { address, get, studyPath } from "./api.js";
import { coloured, panelsAcross } from "./colours.js";
import { fill, h, setText, throttled } from "./dom.js";
import { number } from "./format.js";
import { errorLine, table } from "./parts.js";

const GAP_MS = 2000;
const CONFIG = { responsive: true, displayModeBar: false, displaylogo: false, doubleClick: "reset" };
let loading = null;

/** Load plotly.js from the service, once, and only when a picture is to be drawn: it is large. */
export function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: address("page/plotly.min.js") });
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => {
      loading = null;
      script.remove();
      reject(new Error("The program that draws the pictures could not be loaded; their tables are below."));
    });
    document.head.append(script);
  });
  return loading;
}

/**
 * A picture of a study. `update(version)` fetches it anew when the version differs; `brief` leaves out the description
 * above it.
 */
export function pictureBox(study, picture, { brief = false } = {}) {
  const error = errorLine();
  const plot = h("div", { class: "plot", role: "img", "aria-label": "The picture is being drawn" });
  const region = h("div", { class: "scroll plots", role: "region", tabindex: "0", "aria-label": "Picture" }, plot);
  const described = h("figcaption", { class: "muted" });
  const values = h("div", {});
  const details = h(
    "details",
    { on: { toggle: () => details.open && drawTable() } },
    h("summary", {}, "The figures as a table"),
    values,
  );
  const element = h("figure", { "aria-busy": "true" }, brief ? null : described, error.element, region, details);
  const controller = new AbortController();
  let found = null;
  let version = null;
  let closed = false;

  const load = throttled(async () => {
    try {
      const across = matchMedia("(max-width: 700px)").matches ? "?columns=1" : "";
      found = await get(studyPath(study, `pictures/${picture}${across}`), { signal: controller.signal });
      error.show("");
      setText(described, found.description);
      plot.setAttribute("aria-label", `${found.title}: ${found.description}`);
      region.setAttribute("aria-label", `Picture: ${found.title}`);
      if (details.open) drawTable();
      await draw();
    } catch (problem) {
      if (problem.name !== "AbortError") error.show(problem.message);
    }
  }, GAP_MS);

  async function draw() {
    if (found === null) return;
    const Plotly = await plotly();
    if (closed) return;
    const { data, layout } = coloured(found.figure);
    plot.style.minWidth = `${Math.min(1200, 220 * panelsAcross(found.figure))}px`;
    plot.style.height = `${layout.height ?? 380}px`;
    await Plotly.react(plot, data, layout, CONFIG);
    element.setAttribute("aria-busy", "false");
  }

  function drawTable() {
    if (found !== null) fill(values, figuresTable(found));
  }

  document.addEventListener("theme", draw);
  return {
    element,
    update(now) {
      if (now === version) return;
      version = now;
      load();
    },
    close() {
      closed = true;
      load.cancel();
      controller.abort();
      document.removeEventListener("theme", draw);
      globalThis.Plotly?.purge(plot);
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
