// "Known to work": the best configuration of each program on each machine.

import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { configuration, counted } from "./format.js";
import { setTitle } from "./notices.js";
import { errorLine, table } from "./parts.js";

const COLUMNS = [
  { title: "Program" },
  { title: "Machine" },
  { title: "Configuration" },
  { title: "Over its default" },
  { title: "Value" },
  { title: "Measured" },
  { title: "Study" },
];

/** Show the table in `root`. */
export function openKnown(root) {
  setTitle("Known to work");
  const error = errorLine();
  const result = h("div", { class: "card" }, h("p", { class: "muted" }, "Loading …"));
  fill(
    root,
    h("h1", {}, "Known to work"),
    h(
      "p",
      { class: "lead" },
      "The best configuration of each program on each machine, of all studies here. A speed-up with an interval was " +
        "confirmed in fresh runs beside the default of its study; one that only looks so was not.",
    ),
    error.element,
    result,
  );
  const controller = new AbortController();
  start();

  async function start() {
    try {
      const known = await get("known", { signal: controller.signal });
      fill(result, known.length === 0 ? nothing() : table("Known to work", COLUMNS, known.map(row), { className: "cards" }));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      result.hidden = true;
      error.show(problem.message);
    }
  }

  return { close: () => controller.abort() };
}

function nothing() {
  return h("p", { class: "muted" }, "Nothing is known yet: no study has a valid measurement.");
}

function row(known) {
  const facts = Object.entries(known.facts)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
  const who = [known.who, known.host].filter(Boolean).join("@");
  const others = known.studies.length > 1 ? `best of ${known.studies.length} studies` : "";
  return [
    stacked(known.program, facts),
    known.machine,
    h("code", {}, configuration(known.configuration)),
    stacked(known.confirmed ? h("strong", {}, known.gain) : known.gain, [over(known), known.doubt && h("details", {}, h("summary", {}, "a doubt"), known.doubt)]),
    stacked(known.text, known.metric.name),
    stacked(known.when.slice(0, 10), [who, counted(known.runs, "run")].filter(Boolean).join(", ")),
    stacked(h("a", { href: `#/studies/${encodeURIComponent(known.study)}` }, known.study), others),
  ];
}

function over(known) {
  return known.speed_up === null ? null : `over ${known.default_text}`;
}

function stacked(first, second) {
  return h("div", {}, h("div", { class: "whole" }, first), second ? h("div", { class: "muted small" }, second) : null);
}
