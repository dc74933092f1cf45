// The trials of a study: sorted, filtered, and a page at a time on the screen.

import { get, studyPath } from "./api.js";
import { fill, h, onChange, setText, throttled } from "./dom.js";
import { configuration, coreTime, counted, factor, looks, number, ratioTitle } from "./format.js";
import { errorLine, field, scrolling } from "./parts.js";

const FETCHED = 500;
const SHOWN = 50;
const COLUMNS = [
  { key: "trial", title: "Trial", number: true },
  { key: "state", title: "State" },
  { key: "runs", title: "Runs", number: true },
  { key: "value", title: "Value", number: true },
  { key: "speed_up", title: "Speed-up", number: true },
  { key: "core_s", title: "Cost", number: true },
  { key: "configuration", title: "Configuration" },
  { key: "message", title: "Message" },
];

/** Show the trials of a study in `root`. */
export function openTrials(root, { name }) {
  const error = errorLine();
  const filter = h("select", { on: { change: () => turn(0) } }, h("option", { value: "" }, "all states"));
  const count = h("p", { class: "muted", role: "status" });
  const heads = new Map(COLUMNS.map((column) => [column.key, head(column)]));
  const body = h("tbody");
  const grid = h(
    "table",
    { class: "trials" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        [...heads.values()].map(({ element }) => element),
      ),
    ),
    body,
  );
  const earlier = h("button", { type: "button", on: { click: () => turn(page - 1) } }, "Previous");
  const later = h("button", { type: "button", on: { click: () => turn(page + 1) } }, "Next");
  const pages = h("nav", { class: "buttons pages", "aria-label": "Pages of trials" }, earlier, later);
  fill(
    root,
    h(
      "section",
      { class: "card", "aria-labelledby": "trials-title" },
      h("h2", { id: "trials-title" }, "Trials"),
      h("div", { class: "row end" }, field("Show", filter), count),
      error.element,
      scrolling("Trials, table", grid),
      pages,
    ),
  );
  const controller = new AbortController();
  const drawRows = onChange(({ rows, metric, best }) =>
    fill(
      body,
      rows.map((row) => line(row, metric, best)),
    ),
  );
  let study = null;
  let trials = [];
  let order = { key: "trial", down: true };
  let page = 0;
  let version = null;

  // The more there are, the more rarely all are fetched again: earlier ones change, too.
  const load = throttled(
    async () => {
      try {
        trials = await all(name, controller.signal);
        error.show("");
        draw();
      } catch (problem) {
        if (problem.name !== "AbortError") error.show(problem.message);
      }
    },
    () => Math.max(2000, 4 * trials.length),
  );

  function head({ key, title, number: isNumber }) {
    const button = h("button", { type: "button", class: "sort", on: { click: () => sortBy(key) } }, title);
    const element = h("th", { scope: "col", class: isNumber ? "number" : null }, button);
    return { element, button };
  }

  function sortBy(key) {
    order = { key, down: order.key === key ? !order.down : false };
    turn(0);
  }

  function turn(to) {
    page = to;
    draw();
  }

  function draw() {
    states();
    const chosen = trials.filter((trial) => !filter.value || trial.state === filter.value).sort(by(order));
    page = Math.max(0, Math.min(page, Math.ceil(chosen.length / SHOWN) - 1));
    const first = page * SHOWN;
    const rows = chosen.slice(first, first + SHOWN);
    drawRows({ rows, metric: study?.metric, best: study?.incumbent?.trial ?? null });
    setText(
      count,
      rows.length === 0
        ? "No trial yet."
        : chosen.length > SHOWN
          ? `${first + 1} to ${first + rows.length} of ${counted(chosen.length, "trial")}`
          : counted(chosen.length, "trial"),
    );
    pages.hidden = chosen.length <= SHOWN;
    earlier.disabled = page === 0;
    later.disabled = first + SHOWN >= chosen.length;
    for (const [key, { element }] of heads) {
      if (key === order.key) element.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else element.removeAttribute("aria-sort");
    }
    const unit = study?.metric?.unit;
    setText(heads.get("speed_up").button, ratioTitle(study?.metric));
    setText(heads.get("value").button, study?.metric ? `${study.metric.name}${unit ? ` [${unit}]` : ""}` : "Value");
  }

  function states() {
    const found = [...new Set(trials.map((trial) => trial.state))].sort();
    const known = [...filter.options].slice(1).map((option) => option.value);
    if (found.join() === known.join()) return;
    const before = filter.value;
    fill(
      filter,
      h("option", { value: "" }, "all states"),
      found.map((state) => h("option", { value: state }, state)),
    );
    filter.value = found.includes(before) ? before : "";
  }

  return {
    update(now) {
      study = now;
      if (now.version !== version) {
        version = now.version;
        // Version 0: nothing is stored yet, so there is nothing to ask for.
        if (version === 0) draw();
        else load();
      }
    },
    close() {
      load.cancel();
      controller.abort();
    },
  };
}

async function all(name, signal) {
  const found = [];
  let after = -1;
  while (after !== null && after !== undefined) {
    const { trials, next } = await get(studyPath(name, `trials?after=${after}&limit=${FETCHED}`), { signal });
    found.push(...trials);
    after = trials.length === 0 ? null : next;
  }
  return found;
}

// What has no value comes last in either order.
function by({ key, down }) {
  const sign = down ? -1 : 1;
  return (one, other) => {
    const [left, right] = [sorted(one, key), sorted(other, key)];
    if (left === null || right === null) return (left === null) - (right === null) || one.trial - other.trial;
    if (left === right) return one.trial - other.trial;
    return left < right ? -sign : sign;
  };
}

function sorted(trial, key) {
  if (key === "configuration") return configuration(trial.configuration);
  if (key === "value") return trial.value ?? null;
  return trial[key] === undefined || trial[key] === "" ? null : trial[key];
}

function line(trial, metric, best) {
  const isBest = trial.trial === best;
  const cells = {
    trial: isBest ? [String(trial.trial), h("span", { class: "tag" }, "best")] : String(trial.trial),
    state: h("span", { class: "state", data: { state: trial.state } }, trial.state),
    runs: trial.runs === null ? "" : String(trial.runs),
    value: value(trial, metric),
    speed_up: ratio(trial),
    core_s: coreTime(trial.core_s),
    configuration: h("code", {}, configuration(trial.configuration)),
    message: h("span", { class: "clamped" }, trial.message ?? ""),
  };
  return h(
    "tr",
    { class: isBest ? "best" : null },
    COLUMNS.map(({ key, number: isNumber }) =>
      key === "trial"
        ? h("th", { scope: "row", class: "number" }, cells[key])
        : h("td", { class: isNumber ? "number" : null }, cells[key]),
    ),
  );
}

function ratio({ speed_up: value, confirmed }) {
  if (value === null || value === undefined) return "";
  return confirmed ? factor(value) : looks(value);
}

// A bound is no value: the sign says on which side of it the value is.
function value(trial, metric) {
  if (trial.value !== null && trial.value !== undefined) return number(trial.value);
  if (trial.bound === null || trial.bound === undefined) return "";
  return `${metric?.direction === "maximize" ? "<" : ">"} ${number(trial.bound)}`;
}
