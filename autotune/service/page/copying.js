// A button that copies a text of the page.

import { fill, h } from "./dom.js";
import { announce } from "./notices.js";

const SAID_MS = 2500;

/** A button that copies the text of `element`; `what` names it. */
export function copyButton(element, what) {
  const button = h("button", { type: "button", on: { click: onCopy } }, "Copy");

  async function onCopy() {
    const done = await copied(element);
    fill(button, done ? "Copied" : "Selected: press Ctrl+C");
    announce(done ? `${what} was copied.` : `${what} is selected: press Control and C.`);
    setTimeout(() => fill(button, "Copy"), SAID_MS);
  }

  return button;
}

// Only loopback and https may write to the clipboard; otherwise it is selected for the user.
async function copied(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return false;
  }
}
