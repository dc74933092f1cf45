// The front of a trade-off, and the weights of its metrics, which choose one of its points.

import { get, post, studyPath } from "./api.js";
import { whyNot } from "./controls.js";
import { breakable, fill, h, onChange, setText } from "./dom.js";
import { changes } from "./format.js";
import { errorLine, field, section, table } from "./parts.js";

/** The front of a study; `update(study)` draws it. */
export function frontBox(name, here) {
  let study = null;
  let chosen = null;
  const inputs = new Map();
  const fields = h("div", { class: "row" });
  const said = h("p", { role: "status" });
  const error = errorLine();
  const compare = h("button", { type: "button", class: "changes", on: { click: confirm } }, "Compare it with the default");
  const form = h(
    "form",
    { class: "form", novalidate: true, on: { submit: choose, input: forget } },
    h("h3", {}, "How much each metric matters"),
    fields,
    error.element,
    said,
    h("p", { class: "buttons" }, h("button", { type: "submit" }, "Choose a point"), compare),
  );
  const { element, update: redraw } = section("Front", (shown) => drawFront(shown, here));
  element.append(form);
  const drawFields = onChange((names) => {
    inputs.clear();
    for (const metric of names) inputs.set(metric, h("input", { type: "number", min: "0", step: "any", value: "1" }));
    fill(fields, [...inputs].map(([metric, input]) => field(metric, input)));
  });

  function weights() {
    return [...inputs].map(([metric, input]) => `${metric}=${input.value.trim() || 0}`).join(",");
  }

  async function choose(event) {
    event.preventDefault();
    forget();
    await attempt(async () => {
      const point = await get(studyPath(name, `front?${new URLSearchParams({ weights: weights() })}`));
      const values = Object.entries(point.texts).map(([metric, text]) => `${metric} ${text}`);
      chosen = point.trial;
      setText(said, `Trial ${chosen} is best for these weights: ${values.join(", ")}.`);
    });
    draw();
  }

  async function confirm() {
    if (compare.getAttribute("aria-disabled") === "true") return;
    await attempt(async () => {
      await post(studyPath(name, "confirm"), { weights: weights() });
      setText(said, `Trial ${chosen} is compared with the default in fresh runs.`);
    });
  }

  async function attempt(ask) {
    error.show("");
    try {
      await ask();
    } catch (problem) {
      error.show(problem.message);
    }
  }

  // Other weights may choose another point.
  function forget() {
    chosen = null;
    setText(said, "");
    draw();
  }

  function draw() {
    const why = chosen === null ? "before a point is chosen" : whyNot("confirm", { ...study, best: study.best ?? 0 });
    compare.setAttribute("aria-disabled", String(why !== ""));
    compare.title = why && `not possible ${why}`;
    redraw({ points: study.front_points, base: study.default, chosen: chosen ?? study.incumbent?.trial ?? null });
  }

  return {
    element,
    update(found) {
      study = found;
      drawFields(Object.keys(study.front_points[0]?.values ?? {}));
      draw();
    },
  };
}

function drawFront({ points, base, chosen }, here) {
  if (points.length === 0) return null;
  const names = Object.keys(points[0].values);
  const rows = points.map((point) => [
    [
      h("a", { href: `${here}/trials/${point.trial}` }, `trial ${point.trial}`),
      point.trial === chosen ? h("span", { class: "tag" }, "chosen") : null,
    ],
    ...names.map((name) => point.texts[name]),
    h("code", {}, breakable(changes(point.configuration, base?.configuration))),
  ]);
  const columns = ["Trial", ...names, "Changed from the default"].map((title, at) => ({
    title,
    number: at > 0 && at <= names.length,
  }));
  return table("Points of the front", columns, rows, { className: "cards" });
}
