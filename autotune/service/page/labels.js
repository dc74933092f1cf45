// The dialog for the notes of a study: tags, a text, and whether it is archived.

import { get, studyPath } from "./api.js";
import { freshId, h } from "./dom.js";
import { clearRefused, errorLine, field, showRefused } from "./parts.js";

/** Make the dialog of a study; `open(study)` shows it, `done(study)` is called with the changed study. */
export function labelDialog(name, done) {
  const title = freshId("labels");
  const error = errorLine();
  const inputs = {
    tags: h("input", { name: "tags", autocomplete: "off", spellcheck: "false" }),
    note: h("textarea", { name: "note", rows: "4", maxlength: "2000" }),
    archived: h("input", { name: "archived", type: "checkbox" }),
  };
  const element = h(
    "dialog",
    { "aria-labelledby": title },
    h(
      "form",
      { class: "form", novalidate: true, on: { submit: send } },
      h("h2", { id: title }, `Notes on ${name}`),
      field("Tags", inputs.tags, "Words, with blanks between them."),
      field("Note", inputs.note),
      h("p", {}, h("label", {}, inputs.archived, " Archived: the list leaves it out")),
      error.element,
      h(
        "p",
        { class: "buttons" },
        h("button", { type: "submit", class: "primary" }, "Save"),
        h("button", { type: "button", on: { click: () => element.close() } }, "Cancel"),
      ),
    ),
  );

  async function send(event) {
    event.preventDefault();
    clearRefused(inputs, error);
    const tags = inputs.tags.value.split(/[\s,]+/).filter(Boolean);
    const body = { tags, note: inputs.note.value.trim(), archived: inputs.archived.checked };
    try {
      done(await get(studyPath(name, "labels"), { method: "PUT", body }));
      element.close();
    } catch (problem) {
      showRefused(problem, inputs, error);
    }
  }

  function open({ tags, note, archived }) {
    clearRefused(inputs, error);
    inputs.tags.value = tags.join(" ");
    inputs.note.value = note;
    inputs.archived.checked = archived;
    element.showModal();
  }
  return { element, open };
}

/** Tags as framed words. */
export function tagList(tags) {
  return tags.map((tag) => h("span", { class: "noted-tag" }, tag));
}
