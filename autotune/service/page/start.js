// The dialog that starts a study of the operator's catalogue.

import { get, post } from "./api.js";
import { fill, freshId, h, setText } from "./dom.js";
import { coreTime, counted, duration } from "./format.js";
import { clearRefused, errorLine, field, options, showRefused } from "./parts.js";

const NUMBERS = ["trials", "workers", "seed"];
const UNKNOWN = "What it will cost is not known yet: nothing of this study file was measured.";

/** Make the dialog; `open(like)` shows it with the settings of another study; `element` is its place. */
export function startDialog() {
  const title = freshId("start");
  const choice = h("select", { name: "study", required: true, on: { change: describe } });
  const about = h("div", { class: "about muted" });
  const cost = h("p", { class: "cost muted small", role: "status" });
  const error = errorLine();
  const submit = h("button", { type: "submit", class: "primary" }, "Start");
  const plain = (name, more) => h("input", { name, autocomplete: "off", spellcheck: "false", ...more });
  const whole = (name, min) => h("input", { name, type: "number", min, step: "1", inputmode: "numeric" });
  const taken = h("p", { class: "doubt", role: "status", hidden: true });
  const inputs = {
    name: plain("name", { on: { input: warn } }),
    trials: plain("trials"),
    timeout: plain("timeout", { placeholder: "1h30m" }),
    workers: whole("workers", "1"),
    seed: whole("seed", "0"),
    cores: plain("cores", { placeholder: "all" }),
    launcher: h("select", { name: "launcher" }),
  };
  const launched = [field("Cores", inputs.cores, "Such as 0-3,8."), field("Launcher", inputs.launcher)];
  const form = h(
    "form",
    { class: "form", novalidate: true, on: { submit: send, change: estimate } },
    h("h2", { id: title }, "Start a study"),
    field("Study", choice),
    about,
    field("Name", inputs.name, "Left empty: the study's own name."),
    taken,
    h(
      "div",
      { class: "row" },
      field("Trials", inputs.trials, "A number, or auto."),
      field("Time limit", inputs.timeout, "Such as 45m or 1h30m."),
      field("Workers", inputs.workers, "Runs at a time."),
    ),
    h("div", { class: "row" }, field("Seed", inputs.seed, "Of the search."), launched),
    error.element,
    h(
      "p",
      { class: "buttons" },
      submit,
      h("button", { type: "button", on: { click: () => element.close() } }, "Cancel"),
    ),
    // Below the buttons, which must not move under the pointer when the text gains or loses a line.
    cost,
  );
  const element = h("dialog", { "aria-labelledby": title }, form);
  let catalogue = [];
  let known = [];
  let controller = null;

  async function open(like = null) {
    clearRefused(inputs, error);
    setText(cost, "");
    submit.disabled = false;
    element.showModal();
    choice.focus();
    try {
      const before = like?.study ?? choice.value;
      const asked = ["catalogue", "launchers", "studies"].map((path) => get(path));
      const [studies, launchers, stored] = await Promise.all(asked);
      catalogue = studies;
      known = stored.map(({ name }) => name);
      fill(choice, options(catalogue.map(({ name }) => [name, name])));
      fill(inputs.launcher, options([["", "study's own"], ...launchers.map(({ name }) => [name, launcher(name)])]));
      if (catalogue.some(({ name }) => name === before)) choice.value = before;
      if (like) for (const [name, input] of Object.entries(inputs)) input.value = like[name] ?? "";
      submit.disabled = catalogue.length === 0;
      describe();
      estimate();
    } catch (problem) {
      error.show(problem.message);
    }
  }

  function describe() {
    const study = catalogue.find(({ name }) => name === choice.value);
    for (const part of launched) part.hidden = !study || study.ask_tell;
    if (!study) {
      fill(about, "The catalogue is empty: put study files into the folder that autotune serve was started with.");
      return;
    }
    warn();
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

  // Starting under the name of a study goes on with it.
  function warn() {
    const name = inputs.name.value.trim() || choice.value;
    taken.hidden = !known.includes(name);
    setText(taken, taken.hidden ? "" : `There is a study ${name}: this goes on with it. Another name starts a new one.`);
    setText(submit, taken.hidden ? "Start" : "Go on with it");
  }

  // Incomplete input has no estimate; the service reports errors when the form is sent.
  async function estimate() {
    controller?.abort();
    controller = new AbortController();
    try {
      const found = await post("estimate", order(choice.value, inputs), { signal: controller.signal });
      setText(cost, found ? inWords(found) : UNKNOWN);
    } catch (problem) {
      if (problem.name !== "AbortError") setText(cost, "");
    }
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

  function close() {
    controller?.abort();
    element.close();
  }

  return { element, open, close };
}

function launcher(name) {
  return name === "local" ? "this machine" : name;
}

function inWords({ trials, study, machine, measured, core_s: cores, elapsed_s: elapsed }) {
  if (trials === 0) return "All these trials are made already: only what the verdict still needs is left.";
  const made = `${counted(trials, "more trial")} and the verdict: about ${duration(elapsed.about)}, ${coreTime(cores.about)}`;
  const [low, high] = [elapsed.low, elapsed.high].map(duration);
  const sure = low === high ? "" : `; in nine cases of ten ${low} to ${high}`;
  return `${made}${sure}, by ${counted(measured, "trial")} of ${study}${machine ? ` on ${machine}` : ""}.`;
}

// Empty fields are left to the service.
function order(study, inputs) {
  const body = { study };
  for (const [name, input] of Object.entries(inputs)) {
    const typed = input.value.trim();
    if (typed !== "") body[name] = NUMBERS.includes(name) && /^\d+$/.test(typed) ? Number(typed) : typed;
  }
  return body;
}
