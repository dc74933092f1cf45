// One trial: its configuration, and each of its runs with command and output.

import { get, studyPath } from "./api.js";
import { breakable, fill, h } from "./dom.js";
import { configuration, coreTime, counted, duration } from "./format.js";
import { errorLine, facts, table } from "./parts.js";

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
  const gain = trial.gain && trial.gain !== "1x" && `; ${trial.gain}${trial.confirmed ? " by the verdict" : ", not confirmed"}`;
  const chosen = h("div", { class: "run" });
  const choose = (at) => fill(chosen, drawnRun(made[at], at + 1));
  if (made.length > 0) choose(made.length - 1);
  return [
    trial.text ? h("p", {}, h("strong", {}, `${metric?.name ?? "value"} ${trial.text}`), ` in tuning${gain || ""}`) : null,
    h("p", {}, h("code", {}, breakable(configuration(trial.configuration)))),
    h("p", { class: "muted" }, `${trial.state}, ${counted(made.length, "run")}; tuning took ${coreTime(trial.core_s)}`),
    trial.message ? h("p", { class: "error" }, trial.message) : null,
    made.length === 0 ? h("p", { class: "muted" }, "No run of it has ended yet.") : [runs(made, metric, choose), chosen],
  ];
}

function runs(made, metric, choose) {
  const columns = [
    { title: "Run", number: true },
    { title: "Purpose" },
    { title: metric?.name ?? "Value", number: true },
    { title: "Took", number: true },
    { title: "Started" },
    { title: "Host" },
    { title: "Disturbance" },
  ];
  const rows = made.map((run, at) => [
    h("button", { type: "button", class: "sort", on: { click: () => choose(at) } }, String(at + 1)),
    run.purpose,
    result(run),
    duration(run.elapsed_s),
    run.started.replace("T", " ").slice(0, 19),
    run.host,
    run.disturbance,
  ]);
  return table("Runs", columns, rows, { className: "small" });
}

function result(run) {
  return run.text || run.state;
}

function drawnRun(run, at) {
  return [
    h("h3", {}, `Run ${at}, ${run.purpose}: ${result(run)}`),
    facts([["Held", coreTime(run.core_s)], ...Object.entries(run.texts)]),
    run.message ? h("p", { class: "error" }, run.message) : null,
    ...run.commands.map((command) => text("Command", command)),
    text("stdout", run.stdout),
    text("stderr", run.stderr),
  ];
}

function text(label, found) {
  if (!found) return null;
  return [
    h("h4", {}, label),
    h("pre", { class: "log printed", tabindex: "0", role: "region", "aria-label": label }, found),
  ];
}
