// The dialog for more trials of a study that has ended.

import { post, studyPath } from "./api.js";
import { freshId, h } from "./dom.js";
import { clearRefused, errorLine, field, showRefused } from "./parts.js";

/** Make the dialog of a study; `open()` shows it, `done(study)` is called with the resumed study. */
export function extendDialog(name, done) {
  const title = freshId("extend");
  const trials = h("input", { name: "trials", type: "number", min: "1", step: "1", value: "20", inputmode: "numeric" });
  const error = errorLine();
  const element = h(
    "dialog",
    { "aria-labelledby": title },
    h(
      "form",
      { class: "form", novalidate: true, on: { submit: send } },
      h("h2", { id: title }, `More trials of ${name}`),
      field("How many more", trials, "Then the winner is compared with the default anew."),
      error.element,
      h(
        "p",
        { class: "buttons" },
        h("button", { type: "submit", class: "primary" }, "Make them"),
        h("button", { type: "button", on: { click: () => element.close() } }, "Cancel"),
      ),
    ),
  );

  async function send(event) {
    event.preventDefault();
    clearRefused({ trials }, error);
    try {
      done(await post(studyPath(name, "extend"), { trials: Number(trials.value) }));
      element.close();
    } catch (problem) {
      showRefused(problem, { trials }, error);
    }
  }

  function open() {
    clearRefused({ trials }, error);
    element.showModal();
    trials.select();
  }
  return { element, open };
}
