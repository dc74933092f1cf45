// The best configuration beside the default one, and the command of its newest run, to copy.

import { get, studyPath } from "./api.js";
import { copyButton } from "./copying.js";
import { fill, h } from "./dom.js";
import { counted, plain, quantity } from "./format.js";
import { section, table } from "./parts.js";

/** The configuration of the best trial of a study; `update(study)` draws it. */
export function winnerBox(name, here) {
  const { element, update: redraw } = section("Configuration", drawConfiguration);
  const command = h("pre", {
    class: "log command",
    tabindex: "0",
    role: "region",
    "aria-label": "Command of the best",
  });
  const more = h("p", { class: "buttons" });
  const place = h("div", {}, h("h3", {}, "Its command"), command, more);
  place.hidden = true;
  element.append(place);
  let controller = null;
  let shown = null;

  async function load(best) {
    controller?.abort();
    controller = new AbortController();
    try {
      const { made } = await get(studyPath(name, `trials/${best.trial}`), { signal: controller.signal });
      const newest = made.findLast(({ commands }) => commands.length > 0);
      place.hidden = newest === undefined;
      fill(command, newest?.commands.join("\n") ?? "");
      fill(
        more,
        copyButton(command, "The command"),
        h("a", { href: `${here}/trials/${best.trial}` }, `Trial ${best.trial} and its runs`),
      );
    } catch (problem) {
      // The page of the trial shows the error.
      if (problem.name !== "AbortError") shown = null;
    }
  }

  return {
    element,
    update({ incumbent, default: base, simplified, metric }) {
      redraw({ incumbent, default: base, simplified, metric });
      const best = incumbent ? JSON.stringify([incumbent.trial, incumbent.runs]) : null;
      if (best === shown) return;
      shown = best;
      if (incumbent) load(incumbent);
      else place.hidden = true;
    },
    close: () => controller?.abort(),
  };
}

function drawConfiguration({ incumbent, default: base, simplified, metric }) {
  if (incumbent === null && base === null) return null;
  const sides = [
    ["Best", incumbent],
    ["Default", base],
  ].filter(([, one]) => one !== null);
  const names = [...new Set(sides.flatMap(([, one]) => Object.keys(one.configuration)))];
  const rows = names.map((name) => {
    const differs = incumbent && base && plain(incumbent.configuration[name]) !== plain(base.configuration[name]);
    return [
      h("code", {}, name),
      ...sides.map(([title, one]) => valueCell(one.configuration[name], differs && title === "Best")),
      simplified ? valueCell(simplified[name], false) : null,
    ].filter((cell) => cell !== null);
  });
  const columns = [
    "Parameter",
    ...sides.map(([title, one]) => sideTitle(title, one, metric)),
    ...(simplified ? ["As good, simpler"] : []),
  ];
  return [
    table(
      "Best and default configuration",
      columns.map((title) => ({ title })),
      rows,
      { className: "configuration" },
    ),
    h("p", { class: "muted small" }, "Marked values differ from the default."),
  ];
}

function sideTitle(title, one, metric) {
  const runs = Array.isArray(one.runs) ? one.runs.length : one.runs;
  const about = [`trial ${one.trial}`, quantity(one.value, metric), runs ? counted(runs, "run") : ""]
    .filter(Boolean)
    .join(", ");
  return [title, h("br"), h("span", { class: "muted small" }, about)];
}

function valueCell(value, differs) {
  const unset = value === null || value === undefined;
  const text = h("code", { class: unset ? "muted" : null }, plain(value));
  return differs ? h("mark", {}, text) : text;
}
