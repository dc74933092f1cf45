// A study at a glance: the verdict, the figures, what runs now, the winner beside the default, failures, the ledger.

import { h } from "./dom.js";
import { counted, coreTime, duration, factor, looks, number, plain, quantity, range, ratioTitle } from "./format.js";
import { facts, section, table } from "./parts.js";
import { pictureBox } from "./plot.js";
import { runningSection } from "./running.js";

const SPENT = [
  ["first_runs", "first runs of configurations"],
  ["repeats", "repeats"],
  ["baseline", "the default configuration"],
  ["capped", "capped runs"],
  ["failed", "failed runs"],
  ["comparisons", "comparisons for the verdict"],
];

/** Draw the overview of a study into `root`. */
export function openOverview(root, { name, here }) {
  const verdict = section("Verdict", drawVerdict, { className: "card verdict" });
  const running = runningSection();
  const progress = pictureBox(name, "progress", { brief: true });
  const pictures = h(
    "section",
    { class: "card", "aria-label": "Progress" },
    h("h2", {}, "Progress"),
    progress.element,
    h("p", {}, h("a", { href: `${here}/pictures` }, "All pictures")),
  );
  const configuration = section("Configuration", drawConfiguration);
  const failed = section("Without a value", drawFailures);
  const ledger = section("Ledger", drawLedger);
  const workload = section("Workload", drawWorkload);
  root.append(
    verdict.element,
    running.element,
    pictures,
    configuration.element,
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
      ),
    );
    running.update(study);
    const measured = study.best !== null && study.best !== undefined;
    pictures.hidden = !measured;
    if (measured) progress.update(study.version);
    configuration.update(pick(study, "incumbent", "default", "simplified", "metric"));
    failed.update(study.failures ?? {});
    ledger.update(study.ledger ?? {});
    workload.update(study.workload ?? {});
  }

  return {
    update,
    close() {
      running.close();
      progress.close();
    },
  };
}

function pick(study, ...names) {
  return Object.fromEntries(names.map((name) => [name, study[name] ?? null]));
}

function drawVerdict(study) {
  const { metric, verdict_detail: detail } = study;
  const better = metric?.direction === "maximize" ? "more is better" : "less is better";
  return [
    h("p", { class: "sentence" }, study.verdict ?? noVerdict(study)),
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
      ["Metric", metric ? `${metric.name}${metric.unit ? ` in ${metric.unit}` : ""}, ${better}` : null],
      ["Time left, about", study.left_s === null ? null : duration(study.left_s)],
    ]),
  ];
}

function ratioNote(interval) {
  if (!interval) return "not confirmed yet";
  return interval[0] < interval[1] ? `interval ${range(interval)}` : null;
}

function big(value, note = null) {
  return [h("span", { class: "big" }, value), note ? h("span", { class: "muted small" }, ` ${note}`) : null];
}

function noVerdict({ state, ask_tell: askTell, trials, baseline }) {
  if (trials === 0 && state === "open")
    return "Nothing measured yet: ask for a configuration, run it, and tell what it gave.";
  if (trials === 0) return "Nothing measured yet.";
  if (baseline === null) return "No verdict: the default configuration has no valid measurement yet.";
  if (askTell) return "No verdict: the best so far was not compared with the default in fresh runs.";
  if (["paused", "stopped", "failed"].includes(state)) return "No verdict yet: resume the study, and it ends with one.";
  if (state === "idle") return "No verdict yet: `autotune confirm` makes the comparison.";
  return "No verdict yet: when the budget is used, the best is compared with the default in fresh runs.";
}

function drawConfiguration({ incumbent, default: base, simplified, metric }) {
  if (incumbent === null && base === null) return null;
  const sides = [
    ["Best", incumbent],
    ["Default", base],
  ].filter(([, one]) => one !== null);
  const names = [...new Set(sides.flatMap(([, one]) => Object.keys(one.configuration)))];
  const rows = names.map((name) => {
    const differs = incumbent && base && plain(incumbent.configuration[name]) !== plain(base.configuration[name]);
    return [
      h("code", {}, name),
      ...sides.map(([title, one]) => valueCell(one.configuration[name], differs && title === "Best")),
      simplified ? valueCell(simplified[name], false) : null,
    ].filter((cell) => cell !== null);
  });
  const columns = [
    "Parameter",
    ...sides.map(([title, one]) => sideTitle(title, one, metric)),
    ...(simplified ? ["As good, simpler"] : []),
  ];
  return [
    table(
      "Best and default configuration",
      columns.map((title) => ({ title })),
      rows,
      { className: "configuration" },
    ),
    h("p", { class: "muted small" }, "Marked values differ from the default."),
  ];
}

function sideTitle(title, one, metric) {
  const runs = Array.isArray(one.runs) ? one.runs.length : one.runs;
  const about = [`trial ${one.trial}`, quantity(one.value, metric), runs ? counted(runs, "run") : ""]
    .filter(Boolean)
    .join(", ");
  return [title, h("br"), h("span", { class: "muted small" }, about)];
}

function valueCell(value, differs) {
  const unset = value === null || value === undefined;
  const text = h("code", { class: unset ? "muted" : null }, plain(value));
  return differs ? h("mark", {}, text) : text;
}

function drawFailures(counts) {
  const kinds = Object.entries(counts).filter(([, count]) => count > 0);
  if (kinds.length === 0) return h("p", { class: "muted" }, "None so far.");
  return facts(kinds.map(([kind, count]) => [kind === "capped" ? "capped: had lost" : kind, String(count)]));
}

function drawLedger(ledger) {
  const spent = SPENT.filter(([key]) => ledger[key] > 0).map(([key, title]) => [title, coreTime(ledger[key])]);
  if (spent.length === 0) return h("p", { class: "muted" }, "Nothing spent yet.");
  const total = ledger.spent ?? SPENT.reduce((sum, [key]) => sum + (ledger[key] ?? 0), 0);
  return [
    facts([
      ["spent", h("strong", {}, coreTime(total))],
      ...spent,
      ["on GPUs", ledger.gpu_s > 0 ? `${number(ledger.gpu_s, 3)} GPU-s` : null],
      ["not spent, by capping", ledger.saved_by_caps > 0 ? coreTime(ledger.saved_by_caps) : null],
      ["not spent, by not repeating", ledger.spared_by_racing > 0 ? coreTime(ledger.spared_by_racing) : null],
      ["a run saves", ledger.saved_per_run > 0 ? coreTime(ledger.saved_per_run) : null],
    ]),
    ledger.pays_after
      ? h("p", {}, `Has paid for itself after ${counted(ledger.pays_after, "run")} with the winner.`)
      : null,
  ];
}

function drawWorkload(found) {
  const entries = Object.entries(found).map(([name, value]) => [name, plain(value)]);
  return entries.length === 0 ? null : facts(entries);
}
