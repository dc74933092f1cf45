// The overview of a study: verdict, figures, current runs, the winner beside the default, failures, costs.

import { h } from "./dom.js";
import { changes, counted, coreTime, duration, factor, looks, number, plain, quantity, range, ratioTitle } from "./format.js";
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

/** Draw the overview of a study into `root`. */
export function openOverview(root, { name, here }) {
  const verdict = section("Verdict", drawVerdict, { className: "card verdict" });
  const running = runningSection();
  const front = section("Front", (study) => drawFront(study, here));
  const progress = pictureBox(name, "progress", { brief: true });
  const tradeoff = pictureBox(name, "tradeoff", { brief: true });
  const pictures = h(
    "section",
    { class: "card", "aria-label": "Progress" },
    h("h2", {}, "Progress"),
    progress.element,
    tradeoff.element,
    h("p", {}, h("a", { href: `${here}/pictures` }, "All pictures")),
  );
  const pairs = pictureBox(name, "pairs");
  const sure = h("section", { class: "card", "aria-label": "How sure" }, h("h2", {}, "How sure"), pairs.element);
  const configuration = winnerBox(name, here);
  const failed = section("Without a value", drawFailures);
  const ledger = section("Ledger", drawLedger);
  const workload = section("Workload", drawWorkload);
  root.append(
    h("div", { class: "beside" }, verdict.element, configuration.element),
    front.element,
    running.element,
    pictures,
    sure,
    h("div", { class: "columns" }, failed.element, ledger.element, workload.element),
  );

  function update(study) {
    verdict.update(
      pick(
        study,
        "state",
        "ask_tell",
        "verdict",
        "verdict_detail",
        "metric",
        "best",
        "baseline",
        "speed_up",
        "interval",
        "left_s",
        "trials",
        "trouble",
        "message",
        "noise",
        "front",
        "front_points",
      ),
    );
    front.update(pick(study, "front_points", "default"));
    running.update(study);
    const isFront = (study.front ?? null) !== null;
    const measured = isFront ? study.front > 0 : (study.best ?? null) !== null;
    pictures.hidden = !measured;
    progress.element.hidden = isFront;
    tradeoff.element.hidden = !isFront;
    if (measured) (isFront ? tradeoff : progress).update(study.version);
    const compared = Boolean(study.interval) && study.interval[0] < study.interval[1];
    sure.hidden = !compared;
    if (compared) pairs.update(study.version);
    configuration.update(study);
    failed.update({ counts: study.failures ?? {}, first: study.first_error });
    ledger.update({ ...study.ledger, confirmed: Boolean(study.interval) });
    workload.update(study.workload ?? {});
  }

  return {
    update,
    close() {
      configuration.close();
      running.close();
      progress.close();
      tradeoff.close();
      pairs.close();
    },
  };
}

function pick(study, ...names) {
  return Object.fromEntries(names.map((name) => [name, study[name] ?? null]));
}

function drawVerdict(study) {
  const { metric, verdict_detail: detail } = study;
  const better = metric?.direction === "maximize" ? "more is better" : "less is better";
  if (study.front !== null && study.best === null)
    return [h("p", { class: study.trouble ? "sentence error" : "sentence" }, ofFront(study)), facts([["Noise", study.noise]])];
  return [
    h("p", { class: study.trouble ? "sentence error" : "sentence" }, study.verdict ?? noVerdict(study)),
    detail?.doubt ? h("p", { class: "doubt" }, h("strong", {}, "Doubt: "), detail.doubt) : null,
    facts([
      ["Best", big(quantity(study.best, metric))],
      ["Default", big(quantity(study.baseline, metric))],
      [
        ratioTitle(metric),
        study.speed_up === null
          ? null
          : big(study.interval ? factor(study.speed_up) : looks(study.speed_up), ratioNote(study.interval)),
      ],
      ["Noise", study.noise],
      ["Metric", metric ? `${metric.name}${metric.unit ? ` in ${metric.unit}` : ""}, ${better}` : null],
      ["Time left, about", study.left_s === null ? null : duration(study.left_s)],
    ]),
  ];
}

function ofFront({ front, front_points: points, trouble }) {
  if (trouble) return `Nothing has worked: ${trouble}`;
  if (front === 0) return "Nothing measured yet.";
  const names = Object.keys(points?.[0]?.values ?? {});
  const weights = names.map((name) => `${name}=1`).join(",");
  return [
    `${counted(front, "trial")} on the front: no other is better in ${names.length === 2 ? "both" : "all"} metrics. Weights choose one: `,
    h("code", {}, `autotune best … --weights ${weights}`),
    ", and ",
    h("code", {}, "autotune confirm"),
    " with the same weights compares it with the default.",
  ];
}

function drawFront({ front_points: points, default: base }, here) {
  if (!points?.length) return null;
  const names = Object.keys(points[0].values);
  const rows = points.map((point) => [
    h("a", { href: `${here}/trials/${point.trial}` }, `trial ${point.trial}`),
    ...names.map((name) => point.texts[name]),
    h("code", {}, changes(point.configuration, base?.configuration)),
  ]);
  const columns = ["Trial", ...names, "Changed from the default"].map((title, at) => ({
    title,
    number: at > 0 && at <= names.length,
  }));
  return table("Points of the front", columns, rows);
}

function ratioNote(interval) {
  if (!interval) return "not confirmed yet";
  return interval[0] < interval[1] ? `interval ${range(interval)}` : null;
}

function big(value, note = null) {
  return [h("span", { class: "big" }, value), note ? h("span", { class: "muted small" }, ` ${note}`) : null];
}

function noVerdict({ state, managed, ask_tell: askTell, trials, baseline, trouble }) {
  if (trouble) return `Nothing has worked: ${trouble}`;
  if (trials === 0 && state === "open")
    return "Nothing measured yet: ask for a configuration, run it, and tell what it gave.";
  if (trials === 0) return "Nothing measured yet.";
  if (baseline === null) return "No verdict: the default configuration has no valid measurement yet.";
  if (askTell) return "No verdict: the best so far was not compared with the default in fresh runs.";
  if (managed && ["paused", "stopped", "failed"].includes(state))
    return "No verdict yet: resume the study, and it ends with one.";
  if (!managed && state !== "running")
    return ["No verdict yet: the same ", h("code", {}, "autotune study"), " command resumes, and confirms the best."];
  return "No verdict yet: when the budget is used, the best is compared with the default in fresh runs.";
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
