// Current runs, with clocks that tick between the events.

import { fill, freshId, h, setText } from "./dom.js";
import { clock, configuration, number } from "./format.js";

/** The section of current runs. */
export function runningSection() {
  const id = freshId("running");
  const list = h("ul", { class: "runs" });
  const none = h("p", { class: "muted" });
  const element = h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, "Running now"), list, none);
  const lines = new Map();
  const timer = setInterval(tick, 1000);

  function update(study) {
    const running = study.running ?? [];
    element.hidden =
      running.length === 0 && !["running", "waiting", "pausing", "stopping", "open"].includes(study.state);
    setText(
      none,
      running.length > 0 ? "" : study.state === "waiting" ? "Waiting for cores." : "Nothing at this moment.",
    );
    none.hidden = running.length > 0;
    const keyed = new Map(running.map((run, at) => [keyOf(run, running.slice(0, at)), run]));
    for (const [key, line] of lines) {
      if (!keyed.has(key)) {
        line.element.remove();
        lines.delete(key);
      }
    }
    for (const [key, run] of keyed) {
      if (!lines.has(key)) {
        const line = runLine(run);
        lines.set(key, line);
        list.append(line.element);
      }
      lines.get(key).update(run);
    }
    list.hidden = running.length === 0;
  }

  function tick() {
    // While the service cannot be reached, the page does not know what runs.
    if (document.body.dataset.connection === "lost") return;
    for (const line of lines.values()) line.tick();
  }

  return { element, update, close: () => clearInterval(timer) };
}

// Several runs of one trial may be in progress.
function keyOf({ trial, label }, before) {
  return JSON.stringify([trial, label, before.filter((one) => one.trial === trial && one.label === label).length]);
}

function runLine({ trial, label }) {
  const time = h("span", { class: "figures" });
  const told = h("span", { class: "muted" });
  const code = h("code", {});
  const element = h(
    "li",
    {},
    h("span", { class: "what" }, h("strong", {}, label ? `trial ${trial}, ${label}` : `trial ${trial}`), time, told),
    code,
  );
  let elapsed_s = 0;
  let at = performance.now();

  function tick() {
    setText(time, clock(elapsed_s + (performance.now() - at) / 1000));
  }

  function update(run) {
    // The service says the time of a run, not of this event: a repeated event must not set the clock back.
    if (run.elapsed_s !== elapsed_s) {
      elapsed_s = run.elapsed_s ?? 0;
      at = performance.now();
    }
    const metrics = Object.entries(run.metrics ?? {}).map(([name, value]) => `${name} ${number(value)}`);
    const step = run.step === null || run.step === undefined ? "" : `step ${run.step}`;
    setText(told, run.waits ? `waits: ${run.waits}` : [step, ...metrics].filter(Boolean).join(", "));
    if (code.dataset.of !== configuration(run.configuration)) {
      code.dataset.of = configuration(run.configuration);
      fill(code, code.dataset.of);
    }
    tick();
  }
  return { element, update, tick };
}
