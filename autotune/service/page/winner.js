// The best configuration beside the default one, and the command of its newest run, to copy.

import { get, studyPath } from "./api.js";
import { copyButton } from "./copying.js";
import { breakable, fill, h } from "./dom.js";
import { counted, plain } from "./format.js";
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
    update({ incumbent, default: base, simplified }) {
      redraw({ incumbent, default: base, simplified });
      const best = incumbent ? JSON.stringify([incumbent.trial, incumbent.runs]) : null;
      if (best === shown) return;
      shown = best;
      if (incumbent) load(incumbent);
      else place.hidden = true;
    },
    close: () => controller?.abort(),
  };
}

function drawConfiguration({ incumbent, default: base, simplified }) {
  if (incumbent === null) return null; // a trade-off without weights, or a table, has no single best
  const sides = [
    ["Best", incumbent],
    ["Default", base],
  ].filter(([, one]) => one !== null);
  const names = [...new Set(sides.flatMap(([, one]) => Object.keys(one.configuration)))];
  const differs = (name) => base && plain(incumbent.configuration[name]) !== plain(base.configuration[name]);
  const changed = names.filter(differs);
  const columns = [
    "Parameter",
    ...sides.map(([title, one]) => `${title}, trial ${one.trial}`),
    ...(simplified ? ["As good, simpler"] : []),
  ].map((title) => ({ title }));
  const grid = (label, shown) =>
    table(
      label,
      columns,
      shown.map((name) => [
        h("code", {}, breakable(name)),
        ...sides.map(([, one]) => valueCell(one.configuration[name])),
        ...(simplified ? [valueCell(simplified[name])] : []),
      ]),
      { className: "configuration" },
    );
  if (changed.length === 0) return grid("Best and default configuration", names);
  const others = names.filter((name) => !differs(name));
  return [
    grid("What the best changes", changed),
    others.length === 0
      ? null
      : h("details", {}, h("summary", {}, `${counted(others.length, "option")} as in the default`), grid("Unchanged", others)),
  ];
}

function valueCell(value) {
  const unset = value === null || value === undefined;
  return h("code", { class: unset ? "muted" : null }, breakable(plain(value)));
}
