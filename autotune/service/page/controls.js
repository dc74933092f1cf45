// Pause, resume, stop, delete. The buttons stay where they are: one that does not apply says so instead of vanishing
// from under the focus.

import { address, call, get, post, studyPath } from "./api.js";
import { freshId, h, setText } from "./dom.js";
import { announce } from "./notices.js";
import { errorLine } from "./parts.js";
import { currentToken } from "./session.js";

const VERBS = {
  pause: { title: "Pause", in: ["running", "waiting", "open"], help: "no new run starts; those in flight end" },
  resume: { title: "Resume", in: ["paused", "stopped", "failed", "idle"], help: "goes on from every finished trial" },
  stop: { title: "Stop", in: ["running", "waiting", "pausing", "open"], help: "ends the runs in flight" },
  delete: {
    title: "Delete …",
    in: ["paused", "stopped", "finished", "failed", "idle"],
    help: "takes the study and its measurements out of the storage",
  },
};

/** The buttons of a study; `dialog` belongs into the page, `deleting()` tells whether this page deletes the study. */
export function controls(name) {
  const error = errorLine();
  let study = null;
  let deleting = false;
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

  function press(verb) {
    if (study === null) return;
    if (!applies(verb, study.state)) {
      announce(`${VERBS[verb].title}: not possible while the study is ${study.state}.`);
      return;
    }
    if (verb === "delete") confirm.open(study);
    else act(verb);
  }

  async function act(verb) {
    error.show("");
    try {
      update(await post(studyPath(name, verb)));
    } catch (problem) {
      error.show(problem.message);
    }
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
      error.show(problem.message);
    }
  }

  function update(found) {
    study = found;
    report.hidden = found.version === 0;
    for (const [verb, button] of buttons) {
      const possible = applies(verb, found.state);
      button.setAttribute("aria-disabled", String(!possible));
      button.title = possible ? VERBS[verb].help : `not while the study is ${found.state}`;
      button.classList.toggle("primary", possible && verb === "resume");
    }
  }

  return { element, dialog: confirm.element, update, deleting: () => deleting, close: () => confirm.element.close() };
}

function applies(verb, state) {
  return VERBS[verb].in.includes(state);
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
      // The harmless one first: it has the focus.
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
      `${study.trials} trials, with every run and its measurements, are taken out of the storage. That cannot be undone.`,
    );
    element.showModal();
  }
  return { element, open };
}

// A link cannot send a token: then the report is fetched, and saved as a file.
async function saveReport(event, name, error) {
  if (currentToken() === null) return;
  event.preventDefault();
  error.show("");
  try {
    const blob = await (await call(studyPath(name, "report"), { accept: "text/html" })).blob();
    const url = URL.createObjectURL(blob);
    h("a", { href: url, download: `autotune-${name.replace(/[^\w.-]+/g, "_")}.html` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  } catch (problem) {
    error.show(problem.message);
  }
}
