// Elements that several views share.

import { fill, freshId, h, onChange, setText } from "./dom.js";

/** What a state means, in a few words. */
export const STATES = {
  running: "runs go on",
  waiting: "waits for cores, or for the process that holds the study",
  pausing: "no new run starts; those in flight end first",
  paused: "nothing runs until it is resumed",
  stopping: "ends the runs in flight",
  stopped: "nothing runs until it is resumed",
  finished: "it has ended",
  failed: "ended with an error",
  open: "outside programs ask for configurations and tell what they gave",
};

/** What the state of a study means for it. */
export function standing(study) {
  if (study.state === "running" && study.phase) return study.phase;
  if (study.state === "running" && !study.managed) return "on the command line";
  if (study.state === "failed" && study.trouble) return "ended, and nothing has worked";
  if (study.state === "finished" && isShort(study)) return "ended early: nothing new was left to try, or it paid no more";
  if (study.state === "finished")
    return study.verdict || (study.front ?? null) !== null ? "the search has ended" : "ended, without a verdict";
  return STATES[study.state];
}

/** A state as a word with a symbol; `update(state)` changes it. */
export function badge(state) {
  const element = h("span", { class: "badge" });
  const update = (now) => {
    if (element.dataset.state === now) return;
    element.dataset.state = now;
    element.title = STATES[now] ?? "";
    setText(element, now);
  };
  update(state);
  return { element, update };
}

/** A progress bar of trials, with a text beside it. */
export function budgetBar() {
  const words = h("span", { class: "figures" });
  const bar = h("progress", { "aria-label": "trials towards the budget" });
  const element = h("span", { class: "budget" }, bar, words);
  const update = (study) => {
    const { trials, budget } = study;
    const ended = study.state === "finished" && isShort(study);
    bar.hidden = !budget;
    if (budget) {
      bar.max = ended ? trials : budget;
      bar.value = Math.min(trials, budget);
    }
    setText(words, budget ? `${trials} of ${ended ? "at most " : ""}${budget}` : String(trials));
  };
  return { element, update };
}

function isShort({ trials, budget }) {
  return budget !== null && trials < budget;
}

/** A table that scrolls if it is too wide. `columns`: [{title, number}], `rows`: lists of texts or elements. */
export function table(label, columns, rows, { className = "" } = {}) {
  const head = columns.map(({ title, number }) => h("th", { scope: "col", role: "columnheader", class: number ? "number" : null }, title));
  const lines = rows.map((row) =>
    h(
      "tr",
      { role: "row" },
      row.map((cell, at) => dataCell(cell, columns[at])),
    ),
  );
  // Explicit roles, since browsers drop them for a table laid out as cards.
  const parts = [h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)), h("tbody", { role: "rowgroup" }, lines)];
  return scrolling(label, h("table", { class: className, role: "table" }, parts));
}

/** A region that scrolls sideways, reachable by keyboard. */
export function scrolling(label, ...children) {
  return h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, children);
}

/** Names and values; `entries`: [[name, value], ...], without those whose value is null. */
export function facts(entries) {
  const given = entries.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h(
    "dl",
    { class: "facts" },
    given.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/** A section with a heading; `update(data)` redraws it if the data differ, and hides it if `draw` returns null. */
export function section(title, draw, { className = "card" } = {}) {
  const id = freshId("section");
  const content = h("div", {});
  const element = h("section", { class: className, "aria-labelledby": id }, h("h2", { id }, title), content);
  const redraw = onChange((data) => {
    const drawn = draw(data);
    element.hidden = drawn === null;
    if (drawn !== null) fill(content, drawn);
  });
  return { element, update: redraw };
}

/** A field of a form with its label and, if given, a line of help. */
export function field(label, control, help = null) {
  const id = control.id || freshId("field");
  control.id = id;
  const more = help === null ? null : h("small", { id: `${id}-help`, class: "muted" }, help);
  if (more) control.setAttribute("aria-describedby", `${id}-help`);
  return h("p", { class: "field" }, h("label", { for: id }, label), control, more);
}

/** Options of a <select>: [[value, text], ...]. */
export function options(choices) {
  return choices.map(([value, text]) => h("option", { value }, text));
}

/** An element for an error, which screen readers announce when it appears. */
export function errorLine() {
  const element = h("p", { class: "error", role: "alert", id: freshId("error") });
  return { element, show: (text) => setText(element, text ?? "") };
}

/** Show the service's errors beside the fields of a form (`inputs` by name), and focus the first one. */
export function showRefused(problem, inputs, error) {
  const known = Object.entries(problem.fields ?? {}).filter(([name]) => name in inputs);
  const others = Object.keys(problem.fields ?? {}).length > known.length;
  const lines = known.map(([name, text]) => `${titleOf(inputs[name])}: ${text}`);
  error.show(lines.length === 0 || others ? problem.message : lines.join("\n"));
  for (const [name] of known) {
    inputs[name].setAttribute("aria-invalid", "true");
    inputs[name].setAttribute("aria-errormessage", error.element.id);
  }
  if (known.length > 0) inputs[known[0][0]].focus();
}

/** Remove the errors of a form. */
export function clearRefused(inputs, error) {
  error.show("");
  for (const input of Object.values(inputs)) {
    input.removeAttribute("aria-invalid");
    input.removeAttribute("aria-errormessage");
  }
}

function titleOf(input) {
  return input.labels?.[0]?.textContent ?? input.name;
}

function dataCell(cell, column) {
  const label = typeof column.title === "string" ? column.title : "";
  return h("td", { role: "cell", class: column.number ? "number" : null, data: { label } }, cell instanceof Node || Array.isArray(cell) ? cell : String(cell ?? ""));
}
