// Routes: the part of the address after # selects the view, so that the back button and links work.

import { get } from "./api.js";
import { openCompare } from "./compare.js";
import { fill, h } from "./dom.js";
import { openKnown } from "./known.js";
import { openList } from "./list.js";
import { announce, clearConnection, setTitle } from "./notices.js";
import { openPredictions } from "./predictions.js";
import { keepToken, readToken } from "./session.js";
import { openSignIn } from "./signin.js";
import { openStudy } from "./study.js";

const main = document.getElementById("main");
let view = null;
let shown = null;
let signingIn = false;

/** "#/studies/a%20b/trials" -> ["studies", "a b", "trials"] */
function parts() {
  return location.hash
    .replace(/^#?\/?/, "")
    // The view reads the rest itself.
    .replace(/\?.*$/, "")
    .split("/")
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    });
}

function chosen([page, name]) {
  if (page === undefined) return { key: "list", page: "studies", open: openList };
  if (page === "studies" && name !== undefined) return { key: `study ${name}`, page: "studies", open: openStudy };
  if (page === "studies") return { key: "list", page: "studies", open: openList };
  if (page === "compare") return { key: "compare", page: "compare", open: openCompare };
  if (page === "known") return { key: "known", page: "known", open: openKnown };
  if (page === "predictions") return { key: "predictions", page: "predictions", open: openPredictions };
  return { key: "nothing", page: "", open: openNothing };
}

function route({ first = false, again = false } = {}) {
  if (location.hash.startsWith("#token=")) readToken();
  const path = parts();
  const { key, page, open } = chosen(path);
  for (const link of document.querySelectorAll("[data-page]")) {
    if (link.dataset.page === page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (key === shown && view !== null && !again) {
    view.show?.(path);
    return;
  }
  view?.close?.();
  clearConnection();
  signingIn = false;
  shown = key;
  fill(main);
  view = open(main, path);
  if (first) return;
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function openNothing(root) {
  setTitle("Not found");
  fill(root, h("h1", {}, "There is nothing here"), h("p", {}, h("a", { href: "#/" }, "To the list of studies")));
  return {};
}

function signIn(reason) {
  if (signingIn) return;
  signingIn = true;
  view?.close?.();
  clearConnection();
  shown = null;
  view = openSignIn(main, reason, () => {
    route({ again: true });
    about();
  });
}

async function about() {
  try {
    const { version, read_only } = await get("health");
    // The style sheet hides everything that would change something.
    document.documentElement.toggleAttribute("data-read-only", Boolean(read_only));
    fill(document.getElementById("about"), `autotune ${version}${read_only ? ", read-only" : ""}`);
  } catch {
    // Nothing needs it.
  }
}

addEventListener("hashchange", () => route());
document.addEventListener("unauthorized", (event) => signIn(event.detail));
document.querySelector(".skip").addEventListener("click", (event) => {
  // A plain link would change the route.
  event.preventDefault();
  main.focus();
  main.scrollIntoView();
});
document.getElementById("sign-out").addEventListener("click", () => {
  keepToken(null);
  announce("Signed out.");
  route({ again: true });
});

readToken();
await about();
route({ first: true });
