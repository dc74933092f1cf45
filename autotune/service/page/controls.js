// The buttons of a study: pause, resume, stop, extend, confirm, ablate, delete. They keep their places: a button that does
// not apply is marked so instead of disappearing with the focus.

import { address, call, get, post, studyPath } from "./api.js";
import { freshId, h, setText } from "./dom.js";
import { announce } from "./notices.js";
import { extendDialog } from "./extending.js";
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
  confirm: { title: "Confirm now", in: ENDED, help: "compares the best with the default in fresh runs" },
  ablate: { title: "Ablate", in: ENDED, help: "measures what each changed option of the winner is worth" },
  label: { title: "Notes …", in: null, help: "tags, a note, and whether the list has it" },
  again: { title: "Start another …", in: null, help: "a new study with the options of this one" },
  delete: {
    title: "Delete …",
    in: ENDED,
    help: "takes the study and its measurements out of the storage",
  },
};

const FROM_CATALOGUE = ["extend", "confirm", "ablate", "again"];

/** The buttons of a study; `dialogs` must be added to the page, `deleting()` is true while this page deletes the study. */
export function controls(name) {
  const error = errorLine();
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
  const element = h(
    "div",
    { class: "controls" },
    h(
      "div",
      { class: "buttons", role: "group", "aria-label": "What to do with this study" },
      [...buttons.values()],
      report,
    ),
    error.element,
  );
  const confirm = confirmation(name, remove);
  const extend = extendDialog(name, update);
  const label = labelDialog(name, update);
  const start = startDialog();

  function press(verb) {
    const why = study === null ? "before the study has been read" : reason(verb, study);
    if (why) {
      announce(`${VERBS[verb].title}: not possible ${why}.`);
      return;
    }
    if (verb === "delete") confirm.open(study);
    else if (verb === "extend") extend.open();
    else if (verb === "label") label.open(study);
    else if (verb === "again") start.open(study.again);
    else act(verb);
  }

  async function act(verb) {
    error.show("");
    try {
      update(await post(studyPath(name, verb)));
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
    try {
      await get(studyPath(name), { method: "DELETE" });
      announce(`${name} was deleted.`);
      location.hash = "#/";
    } catch (problem) {
      deleting = false;
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
      const why = reason(verb, study);
      button.setAttribute("aria-disabled", String(why !== ""));
      button.title = why ? `not possible ${why}` : VERBS[verb].help;
      button.classList.toggle("primary", why === "" && verb === "resume");
    }
  }

  function close() {
    for (const one of [confirm, extend, label]) one.element.close();
    start.close();
  }

  const dialogs = [confirm.element, extend.element, label.element, start.element];
  return { element, dialogs, update, deleting: () => deleting, close };
}

// The reason why a verb cannot be used now; empty if it can.
function reason(verb, { state, message, managed, again, ask_tell: told, replay, best, front, version }) {
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
