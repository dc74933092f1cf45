// The form for the token, shown if the service requires one.

import { get } from "./api.js";
import { fill, freshId, h } from "./dom.js";
import { setTitle } from "./notices.js";
import { currentToken, keepToken } from "./session.js";

/** Ask for a token in `root`; `onDone()` when one was accepted. */
export function openSignIn(root, reason, onDone) {
  setTitle("Sign in");
  const id = freshId("token");
  const refused = currentToken() !== null;
  keepToken(null);
  const error = h("p", { class: "error", role: "alert", id: `${id}-error` }, refused ? reason : null);
  const field = h("input", {
    id,
    type: "password",
    name: "token",
    autocomplete: "current-password",
    required: true,
    spellcheck: "false",
    "aria-describedby": `${id}-error ${id}-help`,
  });
  const button = h("button", { type: "submit", class: "primary" }, "Sign in");
  const form = h(
    "form",
    { class: "card form narrow", on: { submit } },
    h("p", { class: "field" }, h("label", { for: id }, "Token"), field),
    h(
      "p",
      { class: "muted", id: `${id}-help` },
      "Is the service yours? ",
      h("code", {}, "autotune serve --url"),
      " prints an address with a token: open that. Otherwise whoever runs the service makes you a token with ",
      h("code", {}, "autotune serve token"),
      ". The page keeps it until this tab is closed.",
    ),
    error,
    button,
  );
  fill(root, h("h1", {}, "Sign in"), form);
  field.focus();

  async function submit(event) {
    event.preventDefault();
    fill(error);
    const typed = field.value.trim();
    if (!typed) {
      fill(error, "Type a token.");
      field.focus();
      return;
    }
    keepToken(typed);
    button.disabled = true;
    try {
      await get("studies");
      onDone();
    } catch (problem) {
      keepToken(null);
      fill(error, problem.message);
      button.disabled = false;
      field.select();
    }
  }
  return {};
}
