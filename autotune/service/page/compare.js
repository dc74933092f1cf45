// Compares studies: the best so far of each over its trials, and their best configurations. The address names them.

import { get, studyPath } from "./api.js";
import { fill, h } from "./dom.js";
import { plain } from "./format.js";
import { setTitle } from "./notices.js";
import { errorLine, table } from "./parts.js";
import { plotArea } from "./plot.js";

const MOST = 8;

/** Show the studies of the address, `#/compare?of=a&of=b`, side by side in `root`. */
export function openCompare(root) {
  setTitle("Compare");
  const error = errorLine();
  const boxes = h("div", { class: "chosen" });
  const area = plotArea("Best so far");
  const picture = h("section", { class: "card", "aria-label": "Best so far" }, h("h2", {}, "Best so far"), area.region);
  const beside = h("div", {});
  const figures = h("section", { class: "card", "aria-label": "Side by side" }, h("h2", {}, "Side by side"), beside);
  const hint = h("p", { class: "muted", role: "status" });
  fill(
    root,
    h("h1", {}, "Compare"),
    h("fieldset", { class: "card" }, h("legend", {}, `Studies, at most ${MOST}`), boxes),
    error.element,
    hint,
    picture,
    figures,
  );
  const controller = new AbortController();
  let turn = 0;

  async function load() {
    turn += 1;
    const mine = turn;
    try {
      const known = (await get("studies", { signal: controller.signal })).map(({ name }) => name);
      const wanted = asked().filter((name) => known.includes(name));
      if (mine !== turn) return;
      choose(known, wanted);
      const studies = await Promise.all(wanted.map((name) => get(studyPath(name), { signal: controller.signal })));
      const drawn = await Promise.all(studies.map(progress));
      if (mine === turn) show(studies, drawn);
      error.show("");
    } catch (problem) {
      if (problem.name !== "AbortError") error.show(problem.message);
    }
  }

  // Keep the pressed element, and with it the focus.
  function choose(known, wanted) {
    if (boxes.dataset.known !== known.join("\n")) {
      boxes.dataset.known = known.join("\n");
      fill(
        boxes,
        known.map((name) =>
          h("label", {}, h("input", { type: "checkbox", value: name, on: { change: changed } }), ` ${name}`),
        ),
      );
    }
    for (const box of boxes.querySelectorAll("input")) {
      box.checked = wanted.includes(box.value);
      box.disabled = !box.checked && wanted.length >= MOST;
    }
  }

  function changed() {
    const names = [...boxes.querySelectorAll("input:checked")].map((box) => ["of", box.value]);
    history.replaceState(null, "", `#/compare${names.length > 0 ? `?${new URLSearchParams(names)}` : ""}`);
    load();
  }

  async function progress({ name, pictures }) {
    if (!pictures.includes("progress")) return null;
    return get(studyPath(name, "pictures/progress"), { signal: controller.signal });
  }

  function show(studies, drawn) {
    const figure = overlaid(studies, drawn);
    picture.hidden = figure.panels.length === 0;
    figures.hidden = studies.length === 0;
    fill(hint, studies.length < 2 ? "Choose two studies or more." : "");
    if (studies.length > 0) fill(beside, sideBySide(studies));
    if (figure.panels.length > 0) area.draw(figure, `Best so far of ${studies.map(({ name }) => name).join(", ")}`);
  }

  load();
  return {
    show: load,
    close() {
      controller.abort();
      area.close();
    },
  };
}

function asked() {
  return new URLSearchParams(location.hash.split("?")[1]).getAll("of").slice(0, MOST);
}

// A panel per metric: seconds and bandwidths cannot share an axis.
function overlaid(studies, drawn) {
  const panels = new Map();
  drawn.forEach((found, number) => {
    const panel = found?.figure.panels[0];
    const best = panel?.marks.find(({ kind, role }) => kind === "line" && role === "best");
    if (!best) return;
    const { name } = studies[number];
    const line = { ...best, role: "series", number, label: name, hover: best.x.map(() => name) };
    const key = panel.y.title;
    if (!panels.has(key)) panels.set(key, { title: "", x: panel.x, y: { ...panel.y, log: false }, marks: [] });
    panels.get(key).y.log ||= panel.y.log;
    panels.get(key).marks.push(line);
  });
  return { columns: 2, panels: [...panels.values()] };
}

function sideBySide(studies) {
  const rows = [
    ["Best", ({ texts }) => texts?.best],
    ["Default", ({ texts }) => texts?.default],
    ["These are", ({ texts }) => texts?.of],
    ["Over the default", ({ texts }) => texts?.gain],
    ["Verdict", ({ verdict }) => verdict ?? "–"],
    ["Trials", ({ trials }) => String(trials)],
    ["Machine", ({ machine }) => machine],
    ["Noise", ({ noise }) => noise],
    ...different(studies, (study) => study.workload),
    ...different(studies, (study) => study.incumbent?.configuration, { all: true }),
  ];
  return table(
    "Studies side by side",
    [
      { title: "" },
      ...studies.map(({ name }) => ({ title: h("a", { href: `#/studies/${encodeURIComponent(name)}` }, name) })),
    ],
    rows.map(([title, value]) => [title, ...studies.map((study) => value(study) || "–")]),
  );
}

// Rows by name of the studies' values. Facts that are the same in all studies are left out, parameters are not.
function different(studies, values, { all = false } = {}) {
  const names = [...new Set(studies.flatMap((study) => Object.keys(values(study) ?? {})))];
  return names
    .filter((name) => all || new Set(studies.map((study) => plain(values(study)?.[name]))).size > 1)
    .map((name) => [h("code", {}, name), (study) => plain(values(study)?.[name])]);
}
