// Notices of the whole page: title, announcements for screen readers, and the state of the connection.

import { setText } from "./dom.js";

const announcer = document.getElementById("announcer");
const connection = document.getElementById("connection");
let hiding = null;
let lost = false;

/** Set the title of the document. */
export function setTitle(text) {
  const wanted = text ? `${text} · autotune` : "autotune";
  if (document.title !== wanted) document.title = wanted;
}

/** Announce a text to a screen reader, after what it is reading. */
export function announce(text) {
  announcer.textContent = text;
}

/** Show whether the page is up to date, "live" or "lost"; announce it once, not at every attempt. */
export function showConnection(state) {
  if (state === "lost") {
    clearTimeout(hiding);
    lost = true;
    document.body.dataset.connection = state;
    connection.className = "connection lost";
    connection.hidden = false;
    setText(connection, "Connection lost, trying again. What you see may be old; studies go on without this page.");
  } else if (lost) {
    lost = false;
    delete document.body.dataset.connection;
    connection.className = "connection";
    setText(connection, "Connected again.");
    hiding = setTimeout(() => {
      connection.hidden = true;
    }, 3000);
  }
}

/** Forget the state of a closed connection. */
export function clearConnection() {
  clearTimeout(hiding);
  lost = false;
  delete document.body.dataset.connection;
  connection.hidden = true;
  connection.textContent = "";
}
