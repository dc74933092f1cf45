// The token: typed once, kept for this tab only, and never left in the address.

const KEY = "autotune-token";
let token = null;

/** The token to send, or null. */
export function currentToken() {
  return token;
}

/** Keep a token until the tab is closed. */
export function keepToken(value) {
  token = value || null;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else sessionStorage.removeItem(KEY);
  } catch {
    // Without storage it lasts until the page is loaded again.
  }
  document.getElementById("sign-out").hidden = token === null;
}

/** Read the token of this tab; `#token=...` in the address is taken once and removed from it. */
export function readToken() {
  let found = null;
  try {
    found = sessionStorage.getItem(KEY);
  } catch {
    // As above.
  }
  const given = /^#token=([^&]+)/.exec(location.hash);
  if (given) {
    history.replaceState(null, "", "#/");
    found = decoded(given[1]);
  }
  keepToken(found);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign
  }
}
