// One trial: its configuration, and each of its runs with command and output.

import { get, studyPath } from "./api.js";
import { fill, h } from "./dom.js";
import { configuration, coreTime, counted, duration, factor, looks, number, quantity } from "./format.js";
import { errorLine, facts } from "./parts.js";

/** A place for one trial; `show(number)` fetches it, `metric` is the study's, `query` leads back to the list. */
export function trialBox(name, here) {
  const title = h("h2", { tabindex: "-1" });
  const error = errorLine();
  const content = h("div", {});
  const list = h("a", {}, "All trials");
  const back = h("p", { class: "back" }, list);
  const element = h("section", { class: "card", "aria-label": "Trial" }, back, title, error.element, content);
  let controller = null;

  async function show(trial, metric, query) {
    list.href = `${here}/trials${query}`;
    controller?.abort();
    const mine = new AbortController();
    controller = mine;
    fill(title, `Trial ${trial}`);
    fill(content, h("p", { class: "muted" }, "Loading the trial …"));
    error.show("");
    try {
      const found = await get(studyPath(name, `trials/${encodeURIComponent(trial)}`), { signal: mine.signal });
      fill(content, ...drawn(found, metric));
      // The link that led here is hidden now.
      title.focus();
    } catch (problem) {
      if (problem.name === "AbortError") return;
      fill(content);
      error.show(problem.message);
    }
  }

  return { element, show, close: () => controller?.abort() };
}

function drawn({ trial, made }, metric) {
  const ratio = trial.speed_up ?? null;
  const gain = ratio === null ? "" : trial.confirmed ? `, ${factor(ratio)}` : `, ${looks(ratio)}, not confirmed`;
  const has = (trial.value ?? null) !== null;
  return [
    has ? h("p", {}, h("strong", {}, `${metric?.name ?? "value"} ${quantity(trial.value, metric)}`), gain) : null,
    h("p", {}, h("code", {}, configuration(trial.configuration))),
    h("p", { class: "muted" }, `${trial.state}, ${counted(made.length, "run")}; tuning took ${coreTime(trial.core_s)}`),
    trial.message ? h("p", { class: "error" }, trial.message) : null,
    made.length === 0 ? h("p", { class: "muted" }, "No run of it has ended yet.") : null,
    ...made.map((run, at) => drawnRun(run, at + 1, made.length, metric)),
  ];
}

function drawnRun(run, at, count, metric) {
  const value = run.value ?? run.bound;
  const words = value === null ? run.state : `${quantity(value, metric)}${run.value === null ? ", capped there" : ""}`;
  const others = Object.entries(run.metrics).filter(([key]) => key !== metric?.name);
  return h(
    "details",
    { class: "run", open: at === count },
    h("summary", {}, `Run ${at}, ${run.purpose}: ${words}`),
    facts([
      ["Started", run.started.replace("T", " ").slice(0, 19)],
      ["Host", run.host],
      ["Time of the job", duration(run.elapsed_s)],
      ["Held", coreTime(run.core_s)],
      ["Most memory", run.memory_bytes > 0 ? `${number(run.memory_bytes / 1e6, 3)} MB` : null],
      ["Disturbance", run.disturbance],
      ...others.map(([key, figure]) => [key, number(figure)]),
    ]),
    run.message ? h("p", { class: "error" }, run.message) : null,
    ...run.commands.map((command) => text("Command", command)),
    text("stdout", run.stdout),
    text("stderr", run.stderr),
  );
}

function text(label, found) {
  if (!found) return null;
  return [
    h("h3", {}, label),
    h("pre", { class: "log printed", tabindex: "0", role: "region", "aria-label": label }, found),
  ];
}
