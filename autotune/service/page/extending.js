// The dialog that asks how many more: trials of a study that has ended, or pairs of runs of its verdict.

import { freshId, h, setText } from "./dom.js";
import { clearRefused, errorLine, field, showRefused } from "./parts.js";

/** Make a dialog for one number, the field `key` of an order; `open(value, help)` shows it, `send(order)` sends it. */
export function numberDialog({ title, key, label, submit }, send) {
  const id = freshId(key);
  const input = h("input", { name: key, type: "number", min: "1", step: "1", inputmode: "numeric" });
  const inputs = { [key]: input };
  const more = h("p", { class: "muted small" });
  const error = errorLine();
  const element = h(
    "dialog",
    { "aria-labelledby": id },
    h(
      "form",
      { class: "form", novalidate: true, on: { submit: order } },
      h("h2", { id }, title),
      field(label, input),
      more,
      error.element,
      h(
        "p",
        { class: "buttons" },
        h("button", { type: "submit", class: "primary" }, submit),
        h("button", { type: "button", on: { click: () => element.close() } }, "Cancel"),
      ),
    ),
  );

  async function order(event) {
    event.preventDefault();
    clearRefused(inputs, error);
    try {
      await send({ [key]: Number(input.value) });
      element.close();
    } catch (problem) {
      showRefused(problem, inputs, error);
    }
  }

  function open(value, help) {
    clearRefused(inputs, error);
    input.value = String(value);
    setText(more, help);
    element.showModal();
    input.select();
  }
  return { element, open };
}
