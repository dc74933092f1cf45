// The list of studies, live.

import { fill, h, onChange, setText } from "./dom.js";
import { failures } from "./format.js";
import { tagList } from "./labels.js";
import { announce, setTitle, showConnection } from "./notices.js";
import { badge, budgetBar, field, options } from "./parts.js";
import { startDialog } from "./start.js";
import { follow } from "./stream.js";

const COLUMNS = ["Study", "State", "Trials", "Best", "Over the default", "Verdict", "Failures", "Began"];

const ORDERS = [
  ["name", "name"],
  ["started", "newest first"],
  ["state", "state"],
  ["speed_up", "greatest gain first"],
  ["trials", "most trials first"],
  ["objective", "program"],
  ["machine", "machine"],
];

/** Show the list in `root` and follow it until closed. */
export function openList(root) {
  setTitle("Studies");
  const rows = new Map();
  const states = new Map();
  const dialog = startDialog();
  const body = h("tbody", { role: "rowgroup" });
  // Explicit roles: on a phone the table is laid out as cards, and browsers then drop its meaning for screen readers.
  const head = h(
    "thead",
    { role: "rowgroup" },
    h(
      "tr",
      { role: "row" },
      COLUMNS.map((title) => h("th", { scope: "col", role: "columnheader" }, title)),
    ),
  );
  const grid = h("table", { class: "studies cards", role: "table", "aria-label": "Studies" }, head, body);
  const region = h(
    "div",
    { class: "card scroll", role: "region", tabindex: "0", "aria-label": "Studies, table" },
    grid,
  );
  region.hidden = true;
  const find = h("input", { type: "search", autocomplete: "off", spellcheck: "false", on: { input: choose } });
  const order = h("select", { on: { change: choose } }, options(ORDERS));
  const archived = h("input", { type: "checkbox", on: { change: choose } });
  const old = h("p", {}, h("label", {}, archived, " Archived, too"));
  const count = h("p", { class: "muted", role: "status" });
  const tools = h("div", { class: "row end" }, field("Find", find), field("Sorted by", order), old, count);
  tools.hidden = true;
  const empty = h("div", { class: "card empty" }, h("p", { class: "muted" }, "Loading the studies …"));
  fill(
    root,
    h(
      "div",
      { class: "heading" },
      h("h1", {}, "Studies"),
      h("button", { type: "button", class: "primary changes", on: { click: () => dialog.open() } }, "Start a study"),
    ),
    tools,
    region,
    empty,
    dialog.element,
  );

  let known = [];

  function update(studies) {
    known = studies;
    draw();
    announceStates(studies, states);
  }

  // Filters are in the address, so that they are kept while a study is shown.
  function choose() {
    const chosen = { find: find.value.trim(), sort: order.value, archived: archived.checked ? "yes" : "" };
    const wanted = Object.entries(chosen).filter(
      ([key, value]) => value !== "" && !(key === "sort" && value === "name"),
    );
    history.replaceState(null, "", `#/${wanted.length > 0 ? `?${new URLSearchParams(wanted)}` : ""}`);
    draw();
  }

  function draw() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = known.filter((study) => archived.checked || !study.archived);
    const studies = shown.filter((study) => words.every((word) => said(study).includes(word))).sort(by(order.value));
    tools.hidden = known.length === 0;
    region.hidden = studies.length === 0;
    empty.hidden = known.length > 0;
    if (known.length === 0) fill(empty, ...nothingYet());
    old.hidden = known.every((study) => !study.archived);
    setText(count, studies.length < known.length ? `${studies.length} of ${known.length} studies` : "");
    const names = new Set(studies.map((study) => study.name));
    for (const [name, row] of rows) {
      if (!names.has(name)) {
        row.element.remove();
        rows.delete(name);
      }
    }
    studies.forEach((study, at) => {
      const row = rows.get(study.name) ?? studyRow(study.name);
      rows.set(study.name, row);
      row.update(study);
      if (body.children[at] !== row.element) body.insertBefore(row.element, body.children[at] ?? null);
    });
  }

  const asked = new URLSearchParams(location.hash.split("?")[1]);
  find.value = asked.get("find") ?? "";
  if (ORDERS.some(([key]) => key === asked.get("sort"))) order.value = asked.get("sort");
  archived.checked = asked.has("archived");
  const stream = follow("events", {
    onEvent: (name, data) => name === "studies" && update(data),
    onState: showConnection,
    onRefused: (error) => error.status !== 401 && fill(empty, h("p", { class: "error" }, error.message)),
  });
  return {
    close() {
      stream.close();
      dialog.close();
    },
  };
}

function nothingYet() {
  return [
    h("p", {}, h("strong", {}, "No study yet.")),
    h(
      "p",
      { class: "changes" },
      "Start one with the button above, or in a terminal, with the storage of this service:",
    ),
    h("pre", { class: "changes" }, h("code", {}, "autotune study qe --trials 50 --storage …")),
  ];
}

function studyRow(name) {
  const link = h("a", { href: `#/studies/${encodeURIComponent(name)}` }, name);
  const state = badge("");
  const budget = budgetBar();
  const [note, best, speed, verdict, failed, began] = Array.from({ length: 6 }, () => h("span", {}));
  const tags = h("span", { class: "tags" });
  note.className = "muted small";
  began.className = "small began";
  verdict.className = "clamped";
  const cells = [[link, note, tags], state.element, budget.element, best, speed, verdict, failed, began];
  const element = h(
    "tr",
    { role: "row" },
    cells.map((cell, at) =>
      at === 0
        ? h("th", { scope: "row", role: "rowheader" }, cell)
        : h("td", { role: "cell", data: { label: COLUMNS[at] }, class: at === 3 || at === 4 ? "figures" : null }, cell),
    ),
  );
  const redrawTags = onChange((names) => fill(tags, tagList(names)));
  const update = (study) => {
    state.update(study.state);
    budget.update(study);
    setText(
      note,
      [study.objective !== name ? study.objective : "", study.replay ? "replay" : "", study.machine]
        .filter(Boolean)
        .join(", "),
    );
    link.title = study.note;
    redrawTags(study.tags);
    setText(began, [study.started.replace("T", " ").slice(0, 16), study.by].filter(Boolean).join("\n") || "–");
    const { texts } = study;
    setText(best, texts?.best || (study.front ? `${study.front} on the front` : "–"));
    best.title = texts?.of ?? "";
    setText(speed, texts?.gain || "–");
    setText(verdict, study.trouble || (study.state === "failed" && study.message) || study.verdict?.replaceAll("`", "") || "–");
    verdict.classList.toggle("error", Boolean(study.trouble));
    verdict.title = verdict.textContent;
    setText(failed, failures({ ...study.failures, capped: 0 }) || "none");
  };
  return { element, update };
}

// Announce changes of state, but not trials, and nothing when the page opens.
function announceStates(studies, states) {
  const changed = studies.filter(({ name, state }) => states.has(name) && states.get(name) !== state);
  for (const { name, state } of studies) states.set(name, state);
  if (changed.length > 0) announce(changed.map(({ name, state }) => `${name} is ${state}`).join(", "));
}

function said({ name, objective, machine, state, verdict, by: who, tags, note }) {
  return [name, objective, machine, state, verdict, who, ...tags, note].filter(Boolean).join(" ").toLowerCase();
}

// Numbers begin with the greatest, words with A; missing values come last.
function by(key) {
  return (one, other) => {
    const [left, right] = [one[key] ?? null, other[key] ?? null];
    if (left === right) return one.name.localeCompare(other.name);
    if (left === null || right === null) return left === null ? 1 : -1;
    if (key === "started") return right.localeCompare(left);
    return typeof left === "number" ? right - left : left.localeCompare(right);
  };
}
