// The decision table of a study: what to use where.

import { get, studyPath } from "./api.js";
import { h, throttled } from "./dom.js";
import { errorLine, section, table } from "./parts.js";

const GAP_MS = 2000;
const NUMBERS = ["share of the time", "over the default", "pairs"];

/** The decision table of a study; `update(study)` fetches it if the study has changed, and hides it without one. */
export function decisionsBox(name) {
  const error = errorLine();
  const { element, update: redraw } = section("What to use where", drawDecisions);
  const controller = new AbortController();
  let version = null;
  element.append(error.element);
  element.hidden = true;

  const load = throttled(async () => {
    try {
      redraw(await get(studyPath(name, "decisions"), { signal: controller.signal }));
      error.show("");
    } catch (problem) {
      if (problem.name === "AbortError") return;
      version = null; // makes the next event try again
      element.hidden = false;
      error.show(problem.message);
    }
  }, GAP_MS);

  return {
    element,
    update(study) {
      if (!study.pictures.includes("decisions") || study.version === version) return;
      version = study.version;
      load();
    },
    close() {
      load.cancel();
      controller.abort();
    },
  };
}

function drawDecisions(found) {
  if (found === null) return null;
  const columns = found.columns.map((title) => ({ title, number: NUMBERS.includes(title) }));
  const rows = found.rows.map((row) => row.map((cell, at) => (columns[at].title === "use" ? h("code", {}, cell) : cell)));
  return [
    table("Decisions", columns, rows, { className: "configuration cards" }),
    found.sentences.map((sentence) => h("p", { class: "muted" }, sentence)),
  ];
}
