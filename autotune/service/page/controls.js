// The buttons of a study. What its state calls for stands in sight, the rest behind "More". A button that does not apply
// leaves the row when it loses the focus; behind "More" it keeps its place and says why.

import { address, call, get, post, studyPath } from "./api.js";
import { freshId, h, setText } from "./dom.js";
import { announce } from "./notices.js";
import { numberDialog } from "./extending.js";
import { labelDialog } from "./labels.js";
import { errorLine } from "./parts.js";
import { saveFile } from "./saving.js";
import { startDialog } from "./start.js";

const ENDED = ["paused", "stopped", "finished", "failed"];
const VERBS = {
  pause: { title: "Pause", in: ["running", "waiting", "open"], help: "no new run starts; those in flight end" },
  resume: { title: "Resume", in: ["paused", "stopped", "failed"], help: "goes on from every finished trial" },
  stop: { title: "Stop", in: ["running", "waiting", "pausing", "open"], help: "ends the runs in flight" },
  extend: { title: "More trials …", in: ENDED, help: "goes on with the search" },
  confirm: { title: "Confirm now", in: ENDED, help: "compares the best with the default in fresh runs, or in more of them" },
  ablate: { title: "Ablate", in: ENDED, help: "measures what each changed option of the winner is worth" },
  label: { title: "Notes …", in: null, help: "tags, a note, and whether the list has it" },
  again: { title: "Start another …", in: null, help: "a new study with the options of this one" },
  delete: {
    title: "Delete …",
    in: ENDED,
    help: "takes the study and its measurements out of the storage",
  },
};

const IN_SIGHT = ["pause", "resume", "stop", "extend", "confirm"];
const FROM_CATALOGUE = ["extend", "confirm", "ablate", "again"];

/** The buttons of a study; `dialogs` must be added to the page, `deleting()` is true while this page deletes the study. */
export function controls(name) {
  const error = errorLine();
  const doing = h("p", { class: "doing", role: "status" });
  let study = null;
  let deleting = false;
  let unreachable = false;
  const buttons = new Map(
    Object.entries(VERBS).map(([verb, { title }]) => [
      verb,
      h(
        "button",
        { type: "button", class: "changes", "aria-disabled": "true", data: { verb }, on: { click: () => press(verb) } },
        title,
      ),
    ]),
  );
  const report = h(
    "a",
    { class: "report", target: "_blank", rel: "noopener", href: address(studyPath(name, "report")) },
    "Report",
  );
  report.addEventListener("click", (event) => saveReport(event, name, error));
  const rest = [...buttons].filter(([verb]) => !IN_SIGHT.includes(verb)).map(([, button]) => button);
  const more = h(
    "details",
    { class: "more", on: { focusout: leave } },
    h("summary", {}, "More"),
    h("div", {}, rest, report),
  );
  const element = h(
    "div",
    { class: "controls" },
    h(
      "div",
      { class: "buttons", role: "group", "aria-label": "What to do with this study" },
      IN_SIGHT.map((verb) => buttons.get(verb)),
      more,
    ),
    doing,
    error.element,
  );
  const confirm = confirmation(name, remove);
  const order = (verb) => async (body) => update(await post(studyPath(name, verb), body));
  const extend = numberDialog(
    { title: `More trials of ${name}`, key: "trials", label: "How many more", submit: "Make them" },
    order("extend"),
  );
  const pairs = numberDialog(
    { title: `A more precise verdict on ${name}`, key: "pairs", label: "Pairs of runs in all", submit: "Make them" },
    order("confirm"),
  );
  const label = labelDialog(name, update);
  const start = startDialog();

  function press(verb) {
    const why = study === null ? "before the study has been read" : whyNot(verb, study);
    if (why) {
      announce(`${VERBS[verb].title}: not possible ${why}.`);
      return;
    }
    if (verb === "delete") confirm.open(study);
    else if (verb === "extend") extend.open(20, afterMore(study));
    else if (verb === "confirm" && study.fresh)
      pairs.open(
        Math.min(1000, Math.max(3, 2 * study.fresh.pairs)),
        `The verdict has ${study.fresh.pairs} pairs. About four times as many halve its interval.`,
      );
    else if (verb === "label") label.open(study);
    else if (verb === "again") start.open(study.again);
    else {
      more.open = false;
      act(verb);
    }
  }

  // The dialogs give the focus back to the button that opened them.
  function leave({ relatedTarget: next }) {
    if (next && !more.contains(next) && !next.closest("dialog")) more.open = false;
  }

  async function act(verb) {
    error.show("");
    try {
      update(await post(studyPath(name, verb), verb === "confirm" ? {} : undefined));
    } catch (problem) {
      refused(problem);
    }
  }

  function refused(problem) {
    unreachable = problem.status === 0;
    error.show(problem.message);
  }

  async function remove() {
    error.show("");
    deleting = true;
    more.open = false;
    setText(doing, `Deleting ${name} …`);
    try {
      await get(studyPath(name), { method: "DELETE" });
      announce(`${name} was deleted.`);
      location.hash = "#/";
    } catch (problem) {
      deleting = false;
      setText(doing, "");
      refused(problem);
    }
  }

  function update(found) {
    // The answer to a verb is the study's summary.
    study = { ...study, ...found };
    if (unreachable) {
      // The service can be reached again.
      unreachable = false;
      error.show("");
    }
    report.hidden = found.version === 0;
    for (const [verb, button] of buttons) {
      const why = whyNot(verb, study);
      button.setAttribute("aria-disabled", String(why !== ""));
      button.title = why ? `not possible ${why}` : VERBS[verb].help;
      button.hidden = why !== "" && IN_SIGHT.includes(verb) && button !== document.activeElement;
      button.classList.toggle("primary", why === "" && (verb === "resume" || (verb === "confirm" && !study.verdict)));
    }
  }

  function close() {
    for (const one of [confirm, extend, pairs, label]) one.element.close();
    start.close();
  }

  const dialogs = [confirm, extend, pairs, label, start].map(({ element: one }) => one);
  return { element, dialogs, update, deleting: () => deleting, close };
}

function afterMore({ front, best, fresh, replay }) {
  if (front !== null && best === null) return "Nothing is compared before weights choose a point of the front.";
  return `Then the result is compared with the default${fresh && !replay ? " again" : ""}.`;
}

/** The reason why a verb cannot be used now; empty if it can. */
export function whyNot(verb, { state, message, managed, again, ask_tell: told, replay, best, front, version }) {
  if (!again && FROM_CATALOGUE.includes(verb))
    return "since its study file is not in the catalogue, or it has more trials than can be asked for here";
  if (verb === "again") return "";
  if (verb === "label") return version ? "" : "before anything was measured";
  // This service can neither pause nor delete a study that runs on the command line.
  if (state === "running" && !managed) return `while ${message}`;
  if (!VERBS[verb].in.includes(state)) return `while the study is ${state}`;
  if (verb !== "confirm" && verb !== "ablate") return "";
  if (told) return "since other programs make its runs";
  if (replay) return "since it is a replay of recorded runs";
  if (best !== null) return "";
  return (front ?? null) === null ? "before there is a winner" : "since no weights choose a point of the front";
}

function confirmation(name, act) {
  const title = freshId("delete");
  const told = h("p", { id: `${title}-what` });
  const element = h(
    "dialog",
    { "aria-labelledby": title, "aria-describedby": `${title}-what` },
    h("h2", { id: title }, `Delete ${name}?`),
    told,
    h(
      "p",
      { class: "buttons" },
      // The harmless button first, since it has the focus.
      h("button", { type: "button", on: { click: () => element.close() } }, "Keep it"),
      h("button", { type: "button", class: "danger", on: { click: confirmed } }, "Delete"),
    ),
  );

  function confirmed() {
    element.close();
    act();
  }

  function open(study) {
    setText(
      told,
      `${study.trials} trials are deleted, with their runs, measurements and run folders. That cannot be undone.`,
    );
    element.showModal();
  }
  return { element, open };
}

// A link cannot send a token, so fetch the report and save it as a file.
async function saveReport(event, name, error) {
  event.preventDefault();
  error.show("");
  try {
    const blob = await (await call(studyPath(name, "report"), { accept: "text/html" })).blob();
    saveFile(`autotune-${name}.html`, blob);
  } catch (problem) {
    error.show(problem.message);
  }
}
