// Predictions: the best configurations for a machine, beside measured ones.

import { get, post } from "./api.js";
import { fill, h, setText } from "./dom.js";
import { configuration, number, ratioTitle } from "./format.js";
import { announce, setTitle } from "./notices.js";
import { clearRefused, errorLine, field, options, showRefused, table } from "./parts.js";

/** Show the form of predictions in `root`. */
export function openPredictions(root) {
  setTitle("Predictions");
  const inputs = {
    study: h("select", { name: "study", required: true }),
    machine: h("select", { name: "machine", on: { change: describe } }),
    nodes: h("input", { name: "nodes", type: "number", min: "1", value: "1" }),
    k: h("input", { name: "k", type: "number", min: "1", max: "50", value: "5" }),
    where: h("textarea", { name: "where", rows: "2", spellcheck: "false", placeholder: "np <= 24" }),
  };
  const about = h("p", { class: "muted small" });
  const error = errorLine();
  const submit = h("button", { type: "submit", class: "primary" }, "Predict");
  const result = h("div", {});
  const form = h(
    "form",
    { class: "card form", novalidate: true, on: { submit: ask } },
    h(
      "div",
      { class: "row" },
      field("Study", inputs.study),
      field("Machine", inputs.machine),
      field("Nodes", inputs.nodes),
      field("Proposals", inputs.k),
    ),
    about,
    field("Only configurations that keep to", inputs.where, "One rule a line."),
    error.element,
    h("p", { class: "buttons" }, submit),
  );
  fill(
    root,
    h("h1", {}, "Predictions"),
    h(
      "p",
      { class: "lead" },
      "The configurations that should be best on a machine, from everything measured so far. Nothing is run.",
    ),
    form,
    result,
  );
  const controller = new AbortController();
  const { signal } = controller;
  let machines = [];
  let catalogue = [];
  start();

  async function start() {
    try {
      [catalogue, machines] = await Promise.all(["catalogue", "machines"].map((path) => get(path, { signal })));
      catalogue = catalogue.filter((study) => !study.ask_tell);
      fill(inputs.study, options(catalogue.map(({ name }) => [name, name])));
      fill(inputs.machine, options([["", "this machine"], ...machines.map(({ name }) => [name, name])]));
      submit.disabled = catalogue.length === 0;
      if (catalogue.length === 0) error.show("The catalogue has no study that can be predicted.");
      describe();
    } catch (problem) {
      if (problem.name !== "AbortError") error.show(problem.message);
    }
  }

  function describe() {
    const chosen = machines.find(({ name }) => name === inputs.machine.value);
    setText(about, chosen?.description ?? "The machine on which the service runs.");
  }

  async function ask(event) {
    event.preventDefault();
    clearRefused(inputs, error);
    submit.disabled = true;
    setText(submit, "Predicting …");
    form.setAttribute("aria-busy", "true");
    try {
      show(await post("predict", question(inputs), { signal }));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      fill(result);
      showRefused(problem, inputs, error);
    } finally {
      submit.disabled = false;
      setText(submit, "Predict");
      form.removeAttribute("aria-busy");
    }
  }

  function show(found) {
    const none = found.proposals.length === 0;
    const title = h("h2", { tabindex: "-1" }, none ? "Nothing can be proposed" : `Proposals for ${found.machine}`);
    fill(
      result,
      h(
        "section",
        { class: "card" },
        title,
        none
          ? h(
              "p",
              {},
              "What was measured so far does not say more about this machine than guessing would. Tune it there, or import measurements of it: a few trials are enough to begin with.",
            )
          : h("p", { class: "muted" }, origin(found.proposals)),
        none ? null : proposals(found),
        words("On these grounds", found.grounds),
        words("Doubts", found.doubts),
        words(
          "What each option of the first is worth, by the model",
          (found.reasons ?? []).map(([name, value]) => `${name}: ${number(value, 3)}x`),
        ),
      ),
    );
    announce(none ? "Nothing can be proposed." : `${found.proposals.length} proposals.`);
    title.focus();
  }

  return { close: () => controller.abort() };
}

// Measured values replace predicted ones.
function origin(proposed) {
  const measured = proposed.filter((one) => one.measured_runs > 0).length;
  if (measured === proposed.length) return "Each of these was measured there.";
  const how =
    measured > 0
      ? `${measured} of the ${proposed.length} were measured there, the others are predicted.`
      : "Predicted, not measured.";
  return `${how} Intervals of predictions are to hold as often as they say, as far as the past tells.`;
}

function question(inputs) {
  const body = { study: inputs.study.value, machine: inputs.machine.value || null };
  for (const name of ["nodes", "k"]) {
    if (inputs[name].value !== "") body[name] = Number(inputs[name].value);
  }
  const rules = inputs.where.value
    .split("\n")
    .map((rule) => rule.trim())
    .filter(Boolean);
  if (rules.length > 0) body.where = rules;
  return body;
}

function proposals({ metric, machine, proposals: proposed, default: base, measured }) {
  const columns = [
    { title: "", number: true },
    { title: "Configuration" },
    { title: metric.name, number: true },
    { title: ratioTitle(metric), number: true },
  ];
  const row = (title, one) => [
    title,
    h("code", {}, configuration(one.configuration)),
    one.text,
    one.gain,
  ];
  const best = measured[0];
  return [
    table("Proposals", columns, [...proposed.map((one, at) => row(String(at + 1), one)), row("default", base)], {
      className: "proposals",
    }),
    best
      ? h(
          "p",
          {},
          `Best measured on ${machine}: ${best.text} with `,
          h("code", {}, configuration(best.configuration)),
        )
      : h("p", { class: "muted" }, `Nothing was measured on ${machine}.`),
  ];
}

function words(title, lines) {
  if (!lines || lines.length === 0) return null;
  return [
    h("h3", {}, title),
    h(
      "ul",
      {},
      lines.map((line) => h("li", {}, line)),
    ),
  ];
}
