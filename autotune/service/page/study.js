// One study: its head, and the section in the address. The stream stays open while sections change.

import { breakable, fill, h, onChange, setText } from "./dom.js";
import { controls } from "./controls.js";
import { tagList } from "./labels.js";
import { openLog } from "./log.js";
import { duration } from "./format.js";
import { announce, setTitle, showConnection } from "./notices.js";
import { openOverview } from "./overview.js";
import { badge, budgetBar, standing } from "./parts.js";
import { openPictures } from "./pictures.js";
import { openScript } from "./script.js";
import { openTrials } from "./trials.js";
import { studyPath } from "./api.js";
import { follow } from "./stream.js";

const SECTIONS = [
  ["", "Overview", openOverview],
  ["pictures", "Pictures", openPictures],
  ["trials", "Trials", openTrials],
  ["script", "Job script", openScript],
  ["log", "Log", openLog],
];

/** Show the study of `path` in `root`, and follow it until closed. */
export function openStudy(root, path) {
  const name = path[1];
  const here = `#/studies/${encodeURIComponent(name)}`;
  const head = header(name);
  const buttons = controls(name);
  const links = new Map(SECTIONS.map(([key, title]) => [key, h("a", { href: key ? `${here}/${key}` : here }, title)]));
  const content = h("div", { class: "content" }, h("p", { class: "muted" }, "Loading the study …"));
  let study = null;
  let section = null;
  let wanted = path.slice(2);
  fill(
    root,
    h("p", { class: "back" }, h("a", { href: "#/" }, "All studies")),
    h("div", { class: "head" }, head.title, head.standing, buttons.element),
    head.about,
    h("nav", { class: "tabs", "aria-label": "About this study" }, [...links.values()]),
    content,
    buttons.dialogs,
  );
  mark();
  setTitle(name);

  function mark() {
    const known = SECTIONS.some(([key]) => key === (wanted[0] ?? "")) ? (wanted[0] ?? "") : "";
    for (const [key, link] of links) {
      if (key === known) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    return known;
  }

  function show(next) {
    wanted = next.slice(2);
    const key = mark();
    if (study === null) return;
    if (section?.key !== key) {
      section?.close();
      fill(content);
      const open = SECTIONS.find(([one]) => one === key)[2];
      section = { key, ...open(content, { name, here, study }) };
    }
    section.show?.(wanted.slice(1));
    section.update(study);
  }

  function update(found) {
    if (study !== null && study.state !== found.state) announce(`${name} is ${found.state}`);
    const first = study === null;
    study = found;
    setTitle(`${name}: ${found.state}`);
    head.update(found);
    buttons.update(found);
    if (first) show(["studies", name, ...wanted]);
    else section?.update(found);
  }

  function gone(message) {
    section?.close();
    section = null;
    setTitle(`${name}: gone`);
    fill(
      root,
      h("h1", {}, name),
      h("p", { role: "alert" }, message),
      h("p", {}, h("a", { href: "#/" }, "To the list of studies")),
    );
  }

  const stream = follow(studyPath(name, "events"), {
    onEvent(event, data) {
      if (event === "study") update(data);
      if (event === "gone") {
        stream.close();
        if (buttons.deleting()) location.hash = "#/";
        else gone("This study was deleted.");
      }
    },
    onState: showConnection,
    onRefused: (error) => error.status !== 401 && (buttons.deleting() ? (location.hash = "#/") : gone(error.message)),
  });
  return {
    show,
    close() {
      stream.close();
      section?.close();
      buttons.close();
    },
  };
}

function header(name) {
  const state = badge("");
  const budget = budgetBar();
  const where = h("p", { class: "muted" });
  const noted = h("p", { class: "noted" });
  const message = h("p", { class: "error" });
  const title = h("h1", {}, breakable(name));
  const words = h("span", { class: "pair" }, h("span", { class: "muted" }, "trials"), budget.element);
  const standingLine = h("p", { class: "standing" }, state.element, words);
  const about = h("div", {}, where, noted, message);
  const redrawNotes = onChange(({ tags, note, archived }) => {
    noted.hidden = tags.length === 0 && !note && !archived;
    fill(noted, archived ? h("strong", {}, "archived ") : null, tagList(tags), note);
  });
  const update = (study) => {
    state.update(study.state);
    budget.update(study);
    setText(
      where,
      [standing(study), study.replay ? "a replay of recorded runs" : "", study.objective, study.machine, began(study)]
        .filter(Boolean)
        .join(" · "),
    );
    redrawNotes({ tags: study.tags, note: study.note, archived: study.archived });
    message.hidden = !study.message;
    message.className = study.state === "failed" ? "error" : "muted";
    setText(message, study.message);
  };
  return { title, standing: standingLine, about, update };
}

// The start of the first run in UTC, how much later the newest one began, and the user who started the study.
function began({ started, newest, by }) {
  if (!started) return by;
  const later_s = (Date.parse(`${newest}Z`) - Date.parse(`${started}Z`)) / 1000;
  const last = later_s > 0 ? `, newest run ${duration(later_s)} later` : "";
  return `began ${started.replace("T", " ").slice(0, 16)} UTC${last}${by ? `, ${by}` : ""}`;
}
