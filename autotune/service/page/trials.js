// The trials of a study. The service filters and sorts them, and sends only those on the screen. Filter and order are in
// the address, so that they can be linked, and are kept while a trial is shown.

import { call, get, studyPath } from "./api.js";
import { breakable, fill, h, onChange, setText, throttled } from "./dom.js";
import { changes, configuration, coreTime, counted, plain, ratioTitle } from "./format.js";
import { clearRefused, errorLine, field, options, scrolling, showRefused } from "./parts.js";
import { saveFile } from "./saving.js";
import { trialBox } from "./trial.js";

const SHOWN = 50;
const COLUMNS = [
  { key: "trial", title: "Trial", number: true },
  { key: "state", title: "State" },
  { key: "runs", title: "Runs", number: true },
  { key: "value", title: "Value", number: true },
  { key: "speed_up", title: "Speed-up", number: true },
  { key: "core_s", title: "Cost", number: true },
  { key: "configuration", title: "Changed from the default", unsorted: true },
];
const ORDERS = [
  ["trial down", "newest first"],
  ["trial up", "oldest first"],
  ["value up", "least value first"],
  ["value down", "greatest value first"],
  ["core_s down", "most expensive first"],
];
const NEWEST = { where: "", state: "", sort: "trial", way: "down", page: "1", columns: "" };

/** Show the trials of a study in `root`. */
export function openTrials(root, { name, here, study: first }) {
  const error = errorLine();
  const states = h("select", { on: { change: () => want({ state: states.value }) } });
  const sorting = h("select", { on: { change: () => sortAs(sorting.value) } }, options(ORDERS));
  const where = h("input", {
    autocomplete: "off",
    spellcheck: "false",
    on: { change: () => want({ where: where.value.trim() }) },
  });
  const count = h("p", { class: "muted", role: "status" });
  const headRow = h("tr", { role: "row" });
  const picker = h("div", { class: "chosen" });
  // Explicit roles, since browsers drop them for a table laid out as cards.
  const body = h("tbody", { role: "rowgroup" });
  const grid = h(
    "table",
    { class: "trials cards", role: "table", "aria-label": "Trials" },
    h("thead", { role: "rowgroup" }, headRow),
    body,
  );
  const earlier = h("button", { type: "button", on: { click: () => turn(-1) } }, "Previous");
  const later = h("button", { type: "button", on: { click: () => turn(1) } }, "Next");
  const pages = h("nav", { class: "buttons pages", "aria-label": "Pages of trials" }, earlier, later);
  const saves = h(
    "div",
    { class: "buttons", role: "group", "aria-label": "Save these trials" },
    ["csv", "json"].map((form) =>
      h("button", { type: "button", on: { click: () => save(form) } }, `Save as ${form.toUpperCase()}`),
    ),
  );
  const single = trialBox(name, here);
  const listing = h(
    "section",
    { class: "card", "aria-labelledby": "trials-title" },
    h("h2", { id: "trials-title" }, "Trials"),
    h(
      "div",
      { class: "row" },
      field("Where", where, "Such as np >= 8, blas = unset, value < 3."),
      field("Show", states),
      field("Sorted by", sorting),
    ),
    h("details", {}, h("summary", {}, "Columns"), picker),
    error.element,
    count,
    scrolling("Trials, table", grid),
    h("div", { class: "below" }, pages, saves),
  );
  fill(root, listing, single.element);
  const controller = new AbortController();
  let heads = new Map();
  const drawHeads = onChange((columns) => {
    heads = new Map(columns.map((column) => [column.key, head(column)]));
    fill(headRow, [...heads.values()].map(({ element }) => element));
  });
  const drawPicker = onChange(({ parameters, chosen }) =>
    fill(
      picker,
      parameters.map((one) => {
        const change = ({ target }) => want({ columns: parameters.filter((other) => (other === one ? target.checked : chosen.includes(other))).join(",") });
        return h("label", {}, h("input", { type: "checkbox", checked: chosen.includes(one), on: { change } }), ` ${one}`);
      }),
    ),
  );
  const drawRows = onChange(({ rows, columns, ...study }) =>
    fill(
      body,
      rows.map((row) => line(row, columns, study, here)),
    ),
  );
  const drawStates = onChange((found) =>
    fill(
      states,
      options([["", "all states"], ...Object.entries(found).map(([state, many]) => [state, `${state} (${many})`])]),
    ),
  );
  const drawOrders = onChange((parameters) =>
    fill(
      sorting,
      options([
        ...ORDERS,
        ...parameters.flatMap((one) => [
          [`${one} up`, `${one}, least first`],
          [`${one} down`, `${one}, greatest first`],
        ]),
      ]),
    ),
  );
  let study = first;
  let wanted = { ...NEWEST };
  let version = null;
  let asked = 0;
  let total = 0;

  // Filtering and sorting many trials takes longer.
  const follow = throttled(load, () => Math.max(2000, total / 5));

  async function load() {
    if (study.version === 0) {
      // Nothing is stored yet.
      draw({ trials: [], total: 0, states: {}, parameters: [] });
      return;
    }
    asked += 1;
    const mine = asked;
    try {
      const query = new URLSearchParams({ ...choice(), offset: SHOWN * (Number(wanted.page) - 1), limit: SHOWN });
      const found = await get(studyPath(name, `table?${query}`), { signal: controller.signal });
      // Ignore the answer to an older request.
      if (mine !== asked) return;
      clearRefused({ where }, error);
      draw(found);
    } catch (problem) {
      if (problem.name === "AbortError" || mine !== asked) return;
      version = null; // makes the next event try again
      showRefused(problem, { where }, error);
    }
  }

  function choice() {
    return { where: wanted.where, state: wanted.state, sort: wanted.sort, down: wanted.way === "down" };
  }

  // A new filter starts at the first page.
  function want(change) {
    wanted = { ...wanted, page: "1", ...change };
    history.replaceState(null, "", `${here}/trials${query()}`);
    load();
  }

  function query() {
    const changed = Object.entries(wanted).filter(([key, value]) => value !== NEWEST[key]);
    return changed.length === 0 ? "" : `?${new URLSearchParams(changed)}`;
  }

  function head({ key, title, number: isNumber, unsorted }) {
    const button = unsorted
      ? h("span", {}, title)
      : h("button", { type: "button", class: "sort", on: { click: () => sortBy(key) } }, title);
    const element = h("th", { scope: "col", role: "columnheader", class: isNumber ? `number ${key}` : null }, button);
    return { element, button };
  }

  function sortBy(key) {
    want({ sort: key, way: wanted.sort === key && wanted.way === "up" ? "down" : "up" });
  }

  function sortAs(words) {
    const at = words.lastIndexOf(" ");
    want({ sort: words.slice(0, at), way: words.slice(at + 1) });
  }

  function turn(by) {
    want({ page: String(Number(wanted.page) + by) });
  }

  function draw({ trials, total: many, states: kinds, parameters }) {
    total = many;
    const start = SHOWN * (Number(wanted.page) - 1);
    if (trials.length === 0 && total > 0) {
      // The address is from a time with more trials.
      want({ page: String(Math.ceil(total / SHOWN)) });
      return;
    }
    drawStates(kinds);
    drawOrders(parameters);
    const [best, defaults] = [study.incumbent?.trial ?? null, study.default?.configuration ?? null];
    const chosen = wanted.columns.split(",").filter((one) => parameters.includes(one));
    const columns = columnsWith(chosen);
    drawPicker({ parameters, chosen });
    drawHeads(columns);
    drawRows({ rows: trials, columns, metric: study.metric, best, defaults });
    setText(
      count,
      total === 0
        ? Object.keys(kinds).length === 0
          ? "No trial yet."
          : "No such trial."
        : total > SHOWN
          ? `${start + 1} to ${start + trials.length} of ${counted(total, "trial")}`
          : counted(total, "trial"),
    );
    pages.hidden = total <= SHOWN;
    saves.hidden = total === 0;
    earlier.disabled = start === 0;
    later.disabled = start + trials.length >= total;
    for (const [key, { element }] of heads) {
      if (key === wanted.sort) element.setAttribute("aria-sort", wanted.way === "down" ? "descending" : "ascending");
      else element.removeAttribute("aria-sort");
    }
    states.value = wanted.state;
    sorting.value = `${wanted.sort} ${wanted.way}`;
    if (document.activeElement !== where) where.value = wanted.where;
    for (const key of ["speed_up", "value"]) fill(heads.get(key).button, breakable(titleOf(key, study.metric)));
  }

  async function save(form) {
    error.show("");
    try {
      // A link cannot send a token.
      const answer = await call(studyPath(name, `table.${form}?${new URLSearchParams(choice())}`), { accept: "*/*" });
      saveFile(`${name}-trials.${form}`, await answer.blob());
    } catch (problem) {
      error.show(problem.message);
    }
  }

  return {
    show([trial]) {
      listing.hidden = trial !== undefined;
      single.element.hidden = trial === undefined;
      if (trial !== undefined) {
        single.show(trial, study.metric, query());
        return;
      }
      wanted = { ...NEWEST, ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])) };
      if (!/^[1-9]\d*$/.test(wanted.page)) wanted.page = "1";
      where.value = wanted.where;
      version = study.version;
      load();
    },
    update(now) {
      study = now;
      if (now.version === version || listing.hidden) return;
      version = now.version;
      follow();
    },
    close() {
      follow.cancel();
      controller.abort();
      single.close();
    },
  };
}
function titleOf(key, metric) {
  if (key === "speed_up") return ratioTitle(metric);
  if (key !== "value" || !metric) return COLUMNS.find((column) => column.key === key).title;
  return `${metric.name}, tuning`;
}

// The chosen parameters stand before the changed options.
function columnsWith(parameters) {
  const chosen = parameters.map((one) => ({ key: one, title: one, isParameter: true }));
  return [...COLUMNS.slice(0, -1), ...chosen, COLUMNS.at(-1)];
}

function messageOf({ message, breaks }) {
  return message || (breaks ? `breaks ${breaks}` : "");
}

function line(trial, columns, { metric, best, defaults }, here) {
  const isBest = trial.trial === best;
  const message = messageOf(trial);
  const cells = {
    trial: [
      h("a", { href: `${here}/trials/${trial.trial}` }, String(trial.trial)),
      isBest ? h("span", { class: "tag" }, "best") : null,
    ],
    state: h("span", { class: "state", data: { state: trial.state } }, trial.state),
    runs: trial.runs === null ? "" : String(trial.runs),
    value: trial.text,
    // The interval of a verdict would make the whole column wide: it is in the title, and on the trial's page.
    speed_up: trial.gain ? h("span", { title: trial.gain }, trial.gain.split(" (")[0]) : "",
    core_s: coreTime(trial.core_s),
    configuration: [
      h("code", { title: configuration(trial.configuration) }, changes(trial.configuration, defaults)),
      message ? h("div", { class: "message small", title: message }, message) : null,
    ],
  };
  const cellOf = ({ key, isParameter }) => (isParameter ? h("code", {}, plain(trial.configuration[key])) : cells[key]);
  return h(
    "tr",
    { class: isBest ? "best" : null, role: "row" },
    columns.map((column) => {
      const { key, title, number: isNumber, isParameter } = column;
      if (key === "trial") return h("th", { scope: "row", role: "rowheader", class: "number" }, cells.trial);
      const label = isParameter ? title : titleOf(key, metric);
      return h("td", { role: "cell", class: isNumber ? "number" : key, data: { label } }, cellOf(column) || null);
    }),
  );
}
