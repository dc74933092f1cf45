// The overview of a study: its result and what to do next, its main picture, current runs, failures, costs. The kind of
// study decides: one winner beside the default, the front of a trade-off, the curves of trainings, or a table.

import { decisionsBox } from "./decisions.js";
import { breakable, fill, h, prose } from "./dom.js";
import { counted, coreTime, duration, number, plain, ratioTitle } from "./format.js";
import { frontBox } from "./front.js";
import { facts, section, table } from "./parts.js";
import { pictureBox } from "./plot.js";
import { runningSection } from "./running.js";
import { winnerBox } from "./winner.js";

const SPENT = [
  ["first_runs", "first runs of configurations"],
  ["repeats", "repeats"],
  ["baseline", "the default configuration"],
  ["capped", "capped runs"],
  ["failed", "failed runs"],
  ["aside", "runs set aside"],
  ["verdict", "the verdict"],
  ["comparisons", "other comparisons"],
];

const OF_VERDICT = [
  ...["state", "ask_tell", "verdict", "doubts", "metric", "best", "baseline", "interval", "texts"],
  ...["left_s", "replay", "trials", "trouble", "noise", "disturbance", "front", "next"],
];

/** Draw the overview of a study into `root`. */
export function openOverview(root, { name, here }) {
  const verdict = section("Verdict", drawVerdict, { className: "card verdict" });
  const running = runningSection();
  const front = frontBox(name, here);
  const decisions = decisionsBox(name);
  const metrics = section("All metrics", drawMetrics);
  const checks = section("Checks of the winner", drawChecks);
  const pictures = h("section", { class: "card", "aria-label": "Pictures" });
  const configuration = winnerBox(name, here);
  const failed = section("Without a value", drawFailures);
  const ledger = section("Ledger", drawLedger);
  const workload = section("Workload", drawWorkload);
  root.append(
    h("div", { class: "beside" }, verdict.element, configuration.element),
    checks.element,
    front.element,
    decisions.element,
    metrics.element,
    running.element,
    pictures,
    h("div", { class: "columns" }, failed.element, ledger.element, workload.element),
  );
  let boxes = [];
  let shown = "";

  // The main picture, and for a verdict and an ablation theirs.
  function draw(study) {
    const wanted = study.pictures.filter((one, at) => at === 0 || one === "pairs" || one === "ablation");
    if (wanted.join() !== shown) {
      close();
      shown = wanted.join();
      boxes = wanted.map((picture) => pictureBox(name, picture, { brief: true }));
      const all = h("p", {}, h("a", { href: `${here}/pictures` }, "All pictures"));
      fill(pictures, h("h2", {}, "Pictures"), h("div", { class: "pictures plain" }, boxes.map(({ element }) => element)), all);
    }
    pictures.hidden = wanted.length === 0;
    for (const box of boxes) box.update(study);
  }

  function close() {
    for (const box of boxes) box.close();
  }

  function update(study) {
    verdict.update(pick(study, ...OF_VERDICT));
    checks.update(pick(study, "checks", "alarms"));
    front.update(study);
    decisions.update(study);
    metrics.update(pick(study, "metrics", "fresh"));
    running.update(study);
    draw(study);
    configuration.update(study);
    failed.update({ counts: study.failures ?? {}, first: study.first_error });
    ledger.update({ ...study.ledger, confirmed: Boolean(study.interval) });
    workload.update(study.workload ?? {});
  }

  return {
    update,
    close() {
      configuration.close();
      decisions.close();
      running.close();
      close();
    },
  };
}

function pick(study, ...names) {
  return Object.fromEntries(names.map((name) => [name, study[name] ?? null]));
}

function drawVerdict(study) {
  const { metric, texts } = study;
  const better = metric?.direction === "maximize" ? "more is better" : "less is better";
  const [ratio, interval] = (texts?.gain ?? "").split(" (");
  const sure = interval ? `(${interval}` : study.interval ? null : "not confirmed yet";
  const measured = (text) => (text ? big(text, texts.of) : null);
  return [
    h("p", { class: study.trouble ? "sentence error" : "sentence" }, prose(study.verdict ?? noVerdict(study))),
    (study.doubts ?? []).map((doubt) => h("p", { class: "doubt" }, h("strong", {}, "Doubt: "), doubt)),
    facts([
      ["Best", measured(texts?.best)],
      ["Default", texts?.best ? measured(texts.default) : null],
      [ratioTitle(metric), texts?.gain ? big(ratio, sure) : null],
      ["Noise", study.noise],
      ["Others on the machine", study.disturbance],
      ["Metric", metric ? breakable(`${metric.name}${metric.unit ? ` in ${metric.unit}` : ""}, ${better}`) : null],
      ["Time left, about", study.left_s === null || study.replay ? null : duration(study.left_s)],
    ]),
    study.next ? h("p", { class: "next" }, h("strong", {}, "Next: "), prose(study.next)) : null,
  ];
}

// What else was measured, and the limits that the winner keeps.
function drawMetrics({ metrics, fresh }) {
  if (!metrics?.length) return null;
  const limited = metrics.some(({ limit }) => limit);
  const columns = [{ title: "Metric" }, { title: "Best", number: true }, { title: "Default", number: true }];
  const rows = metrics.map(({ name, best, default: base, limit }) => [h("code", {}, name), best, base, ...(limited ? [limit] : [])]);
  return [
    table("All metrics", limited ? [...columns, { title: "Limit" }] : columns, rows, { className: "configuration cards" }),
    h("p", { class: "muted small" }, fresh ? "Medians of the fresh runs behind the verdict." : "Medians of tuning."),
  ];
}

// The checks of `autotune watch`, the newest first.
function drawChecks({ checks, alarms }) {
  if (!checks?.length) return null;
  return [
    alarms.length === 0 ? h("p", {}, "Nothing has changed beyond the noise since the verdict.") : null,
    alarms.map((alarm) => h("p", { class: "error" }, alarm)),
    h("ul", {}, checks.toReversed().map((check) => h("li", {}, check))),
  ];
}

function big(value, note = null) {
  return [h("span", { class: "big" }, value), note ? h("span", { class: "muted small" }, ` ${note}`) : null];
}

function noVerdict({ state, trials, baseline, best, front, trouble }) {
  if (trouble) return `Nothing has worked: ${trouble}`;
  if (trials === 0 && state === "open")
    return "Nothing measured yet: ask for a configuration, run it, and tell what it gave.";
  if (trials === 0) return "Nothing measured yet.";
  if (front !== null && best === null)
    return `${counted(front, "trial")} on the front: no other is better in every metric. Weights choose one of them, below.`;
  if (baseline === null) return "No verdict: the default configuration has no valid measurement yet.";
  return "No verdict: the best so far was not compared with the default in fresh runs.";
}

function drawFailures({ counts, first }) {
  const kinds = Object.entries(counts).filter(([, count]) => count > 0);
  if (kinds.length === 0) return h("p", { class: "muted" }, "None so far.");
  return [
    facts(kinds.map(([kind, count]) => [kind === "capped" ? "capped: had lost" : kind, String(count)])),
    first ? h("p", { class: "error" }, `The first error, of trial ${first.trial}: ${first.message}`) : null,
  ];
}

function drawLedger(ledger) {
  const spent = SPENT.filter(([key]) => ledger[key] > 0).map(([key, title]) => [title, coreTime(ledger[key])]);
  if (spent.length === 0) return h("p", { class: "muted" }, "Nothing spent yet.");
  const total = ledger.spent ?? SPENT.reduce((sum, [key]) => sum + (ledger[key] ?? 0), 0);
  return [
    facts([
      ["spent", h("strong", {}, coreTime(total))],
      ...spent,
      ["cores busy", ledger.busy_share == null ? null : `${Math.round(100 * ledger.busy_share)} % of that`],
      ["on GPUs", ledger.gpu_s > 0 ? `${number(ledger.gpu_s, 3)} GPU-s` : null],
      ["GPUs busy", ledger.gpu_busy_share == null ? null : `${Math.round(100 * ledger.gpu_busy_share)} % of that`],
      ["not spent, by capping", ledger.saved_by_caps > 0 ? coreTime(ledger.saved_by_caps) : null],
      ["not spent, by not repeating", ledger.spared_by_racing > 0 ? coreTime(ledger.spared_by_racing) : null],
      ["a run saves", ledger.saved_per_run > 0 ? coreTime(ledger.saved_per_run) : null],
    ]),
    ledger.pays_after
      ? h(
          "p",
          {},
          `${ledger.confirmed ? "It" : "If a verdict confirms the best, it"} is paid for after ${counted(ledger.pays_after, "production run")} with the winner.`,
        )
      : null,
  ];
}

function drawWorkload(found) {
  const entries = Object.entries(found).map(([name, value]) => [name, plain(value)]);
  return entries.length === 0 ? null : facts(entries);
}
