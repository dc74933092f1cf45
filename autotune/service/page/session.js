// The token of all requests. It is in the page's own storage, not in a cookie: browsers send a host's cookies to all its
// ports, so also to services of other users of that host.

const KEY = "autotune-token";
let token = null;

/** The token to send, or null. */
export function currentToken() {
  return token;
}

/** Keep a typed token until the tab is closed; null removes every token. */
export function keepToken(value) {
  token = value || null;
  try {
    if (token) sessionStorage.setItem(KEY, token);
    else for (const place of [sessionStorage, localStorage]) place.removeItem(KEY);
  } catch {
    // Without storage the token lasts until the page is loaded again.
  }
  showSignOut();
}

/**
 * Read the token of this tab. `#token=...` in the address is removed from it, and kept for all tabs of this service:
 * `autotune serve` prints such an address, and its token ends with the service.
 */
export function readToken() {
  const given = /^#token=([^&]+)/.exec(location.hash);
  if (given) history.replaceState(null, "", "#/");
  token = given && decoded(given[1]);
  try {
    if (given) {
      sessionStorage.removeItem(KEY);
      localStorage.setItem(KEY, token);
    } else {
      token = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
    }
  } catch {
    // As above.
  }
  showSignOut();
}

function showSignOut() {
  document.getElementById("sign-out").hidden = token === null;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray percent sign
  }
}
