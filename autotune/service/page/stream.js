// Follows server-sent events by fetch, since an EventSource cannot send a token. Reconnects by itself.

import { call, Refused } from "./api.js";

const FIRST_WAIT_S = 0.5;
const LONGEST_WAIT_S = 15;
// The service sends something every 8 s; after a silence this long the connection is dead, even if TCP has not noticed.
const SILENCE_S = 20;
// Browsers allow few connections to a host, so a tab in the background closes its connection after a while.
const HIDDEN_S = 20;

/**
 * Follow `path` until `close()` of the returned object is called.
 * `onEvent(name, data)`: data is read from JSON. `onState(state, wait_s)`: "live", or "lost" with the seconds until the
 * next try. `onRefused(error)`: the service refuses for good (401, 403, 404, 410); the stream is over then.
 */
export function follow(path, { onEvent, onState, onRefused }) {
  let closed = false;
  let controller = null;
  let timer = null;
  let failures = 0;

  async function connect() {
    clearTimeout(timer);
    const mine = new AbortController();
    controller = mine;
    const watchdog = silence(() => mine.abort());
    let retry_s = null;
    try {
      const answer = await call(path, { accept: "text/event-stream", signal: mine.signal });
      failures = 0;
      onState("live", 0);
      await read(answer.body.getReader(), (event) => !closed && controller === mine && hand(event), watchdog);
    } catch (error) {
      if (closed || controller !== mine) return;
      if (error instanceof Refused && [401, 403, 404, 410].includes(error.status)) {
        close();
        onRefused(error);
        return;
      }
      retry_s = error.retry_s ?? null;
    } finally {
      watchdog.stop();
      mine.abort();
    }
    if (closed || controller !== mine) return;
    controller = null;
    if (document.hidden) return; // continues when the tab is shown
    // Random, so that pages do not all reconnect at the same moment.
    const wait_s = retry_s ?? Math.min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** failures) * (0.75 + Math.random() / 2);
    failures += 1;
    onState("lost", wait_s);
    timer = setTimeout(connect, wait_s * 1000);
  }

  // An error while drawing is not a lost connection.
  function hand(event) {
    try {
      onEvent(event.name, event.data);
    } catch (error) {
      reportError(error);
    }
  }

  function drop() {
    clearTimeout(timer);
    const old = controller;
    controller = null;
    old?.abort();
  }

  function onVisibility() {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(drop, HIDDEN_S * 1000);
    else if (controller === null) connect();
  }

  function onOnline() {
    if (controller === null) connect();
  }

  function close() {
    closed = true;
    document.removeEventListener("visibilitychange", onVisibility);
    window.removeEventListener("online", onOnline);
    drop();
  }

  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", onOnline);
  connect();
  return { close };
}

async function read(reader, onEvent, watchdog) {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    watchdog.reset();
    const blocks = (rest + decoder.decode(value, { stream: true }).replaceAll("\r", "")).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const event = parsed(block);
      if (event) onEvent(event);
    }
  }
}

function parsed(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
    if (field === "event") name = value;
    if (field === "data") data.push(value);
  }
  if (data.length === 0) return name === "message" ? null : { name, data: null };
  const joined = data.join("\n");
  return { name, data: joined === "" ? null : JSON.parse(joined) };
}

function silence(act) {
  let timer = setTimeout(act, SILENCE_S * 1000);
  return {
    reset() {
      clearTimeout(timer);
      timer = setTimeout(act, SILENCE_S * 1000);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
