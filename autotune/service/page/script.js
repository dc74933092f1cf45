// The winner as a job script, to copy.

import { get, studyPath, text } from "./api.js";
import { copyButton } from "./copying.js";
import { fill, h, setText } from "./dom.js";
import { errorLine, field, options } from "./parts.js";
import { saveFile } from "./saving.js";

const NONE = "No winner yet: there is a script as soon as one configuration was measured.";
const NOT_CHOSEN = "No point of the front is chosen: choose one by weights in the overview, and compare it with the default.";

/** Show the winner's job script in `root`. */
export function openScript(root, { name }) {
  const form = h("select", { on: { change: load } });
  const error = errorLine();
  const script = h("pre", { class: "script", tabindex: "0", role: "region", "aria-label": "Job script" });
  const copy = copyButton(script, "The job script");
  const hint = h("p", { class: "muted" });
  const save = h("button", { type: "button", on: { click: () => saveFile(`${name}.sh`, script.textContent) } }, "Save");
  const tools = h("div", { class: "row end" }, field("For", form), h("p", { class: "buttons field-end" }, copy, save));
  const none = h("p", { class: "muted" });
  const title = h("h2", { id: "script-title" }, "The winner as a job script");
  fill(
    root,
    h("section", { class: "card", "aria-labelledby": "script-title" }, title, none, tools, hint, error.element, script),
  );
  let winner = null;
  let controller = null;
  let forms = null;

  async function load() {
    controller?.abort();
    const mine = new AbortController();
    controller = mine;
    error.show("");
    try {
      if (!forms) {
        forms = await get(studyPath(name, "script-forms"), { signal: mine.signal });
        fill(form, options(forms.map((one) => [one.name, one.title])));
      }
      const found = await text(studyPath(name, `script?form=${form.value}`), { signal: mine.signal });
      show(found);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      winner = null; // makes the next event try again
      show(null);
      error.show(problem.message);
    }
  }

  function show(found) {
    script.hidden = found === null;
    hint.hidden = found === null;
    for (const button of [copy, save]) button.disabled = found === null;
    fill(script, found ?? "");
    setText(hint, "Set the project, the queue and the memory before you submit it.");
  }

  return {
    update(study) {
      setText(none, study.front === null ? NONE : NOT_CHOSEN);
      const now = JSON.stringify([study.incumbent?.configuration, study.simplified, study.verdict]);
      if (now === winner) return;
      winner = now;
      none.hidden = Boolean(study.incumbent);
      tools.hidden = !study.incumbent;
      if (study.incumbent) load();
      else show(null);
    },
    close: () => controller?.abort(),
  };
}
