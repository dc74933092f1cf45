// The end of a study's log.

import { studyPath, text } from "./api.js";
import { fill, h, setText, throttled } from "./dom.js";
import { errorLine } from "./parts.js";

const LINES = 400;
const GAP_MS = 2000;

/** Show the log of a study in `root`, and keep it at its end unless the user scrolled up. */
export function openLog(root, { name }) {
  const error = errorLine();
  const none = h("p", { class: "muted", hidden: true }, "Nothing logged: the study was not started by this service.");
  const log = h("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Log" });
  fill(
    root,
    h(
      "section",
      { class: "card", "aria-labelledby": "log-title" },
      h("h2", { id: "log-title" }, `Log, the last ${LINES} lines`),
      error.element,
      none,
      log,
    ),
  );
  const controller = new AbortController();
  let before = null;

  const load = throttled(async () => {
    try {
      const found = await text(studyPath(name, `log?lines=${LINES}`), { signal: controller.signal });
      const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
      setText(log, found);
      none.hidden = found !== "";
      log.hidden = found === "";
      error.show("");
      if (atEnd) log.scrollTop = log.scrollHeight;
    } catch (problem) {
      if (problem.name !== "AbortError") error.show(problem.message);
    }
  }, GAP_MS);

  return {
    update(study) {
      // A running study writes lines without any other change.
      const now = JSON.stringify([study.version, study.state, study.phase, study.running]);
      if (now === before) return;
      before = now;
      load();
    },
    close() {
      load.cancel();
      controller.abort();
    },
  };
}
