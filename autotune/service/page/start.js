// The dialog that starts a study of the operator's catalogue.

import { get, post } from "./api.js";
import { fill, freshId, h } from "./dom.js";
import { counted } from "./format.js";
import { clearRefused, errorLine, field, options, showRefused } from "./parts.js";

/** Make the dialog; `open()` shows it, `element` belongs into the page. */
export function startDialog() {
  const title = freshId("start");
  const choice = h("select", { name: "study", required: true, on: { change: describe } });
  const about = h("div", { class: "about muted" });
  const error = errorLine();
  const submit = h("button", { type: "submit", class: "primary" }, "Start");
  const inputs = {
    name: h("input", { name: "name", autocomplete: "off", spellcheck: "false" }),
    trials: h("input", { name: "trials", autocomplete: "off", spellcheck: "false" }),
    timeout: h("input", { name: "timeout", autocomplete: "off", spellcheck: "false", placeholder: "1h30m" }),
    workers: h("input", { name: "workers", type: "number", min: "1", step: "1", inputmode: "numeric" }),
  };
  const form = h(
    "form",
    { class: "form", novalidate: true, on: { submit: send } },
    h("h2", { id: title }, "Start a study"),
    field("Study", choice),
    about,
    field("Name", inputs.name, "Left empty: the study's own name."),
    h(
      "div",
      { class: "row" },
      field("Trials", inputs.trials, "A number, or auto."),
      field("Time limit", inputs.timeout, "Such as 45m or 1h30m."),
      field("Workers", inputs.workers, "Runs at a time."),
    ),
    error.element,
    h(
      "p",
      { class: "buttons" },
      submit,
      h("button", { type: "button", on: { click: () => element.close() } }, "Cancel"),
    ),
  );
  const element = h("dialog", { "aria-labelledby": title }, form);
  let catalogue = [];

  async function open() {
    clearRefused(inputs, error);
    submit.disabled = false;
    element.showModal();
    choice.focus();
    try {
      const before = choice.value;
      catalogue = await get("catalogue");
      fill(choice, options(catalogue.map(({ name }) => [name, name])));
      if (catalogue.some(({ name }) => name === before)) choice.value = before;
      submit.disabled = catalogue.length === 0;
      describe();
    } catch (problem) {
      error.show(problem.message);
    }
  }

  function describe() {
    const study = catalogue.find(({ name }) => name === choice.value);
    if (!study) {
      fill(about, "The catalogue is empty: put study files into the folder that autotune serve was started with.");
      return;
    }
    inputs.trials.placeholder = study.trials ? String(study.trials) : "auto";
    fill(
      about,
      study.description ? h("p", {}, study.description) : null,
      h(
        "p",
        {},
        `${study.objective}, ${counted(study.parameters.length, "parameter")}: ${study.parameters.join(", ")}`,
      ),
      study.ask_tell
        ? h("p", {}, "Outside programs ask for configurations and tell what they gave; nothing is run here.")
        : null,
    );
  }

  async function send(event) {
    event.preventDefault();
    clearRefused(inputs, error);
    submit.disabled = true;
    try {
      const study = await post("studies", order(choice.value, inputs));
      element.close();
      location.hash = `#/studies/${encodeURIComponent(study.name)}`;
    } catch (problem) {
      showRefused(problem, inputs, error);
    } finally {
      submit.disabled = false;
    }
  }

  return { element, open, close: () => element.close() };
}

// What was left empty is left to the service.
function order(study, inputs) {
  const body = { study };
  for (const [name, input] of Object.entries(inputs)) {
    const typed = input.value.trim();
    if (typed !== "")
      body[name] = (name === "trials" || name === "workers") && /^\d+$/.test(typed) ? Number(typed) : typed;
  }
  return body;
}
