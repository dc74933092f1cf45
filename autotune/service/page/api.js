// Requests to the service. Addresses are relative to the page, so that it also works behind a proxy with a prefix.

import { currentToken } from "./session.js";

const ROOT = new URL("../", import.meta.url);

/** An error of the service: `message` is its text, `fields` has the messages by field. */
export class Refused extends Error {
  constructor(status, message, retry_s = null, fields = {}) {
    super(message);
    this.status = status;
    this.retry_s = retry_s;
    this.fields = fields;
  }
}

/** The address of a path of the service: address("studies"). */
export function address(path) {
  return new URL(path, ROOT).href;
}

/** The path of a study, whose name may contain any character. */
export function studyPath(name, rest = "") {
  return `studies/${encodeURIComponent(name)}${rest ? `/${rest}` : ""}`;
}

/**
 * Fetch a path. `body` makes it a POST with JSON.
 * Throws Refused, with status 0 if the service cannot be reached; an abort is passed on.
 */
export async function call(path, { method, body, signal, accept = "application/json" } = {}) {
  const headers = { Accept: accept };
  if (currentToken()) headers.Authorization = `Bearer ${currentToken()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const options = { method: method ?? (body === undefined ? "GET" : "POST"), headers, signal, cache: "no-store" };
  if (body !== undefined) options.body = JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(address(path), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer. Is `autotune serve` still running?");
  }
  if (answer.ok) return answer;
  const { message, fields } = await reason(answer);
  const refused = new Refused(answer.status, message, retryAfter(answer), fields);
  if (answer.status === 401) document.dispatchEvent(new CustomEvent("unauthorized", { detail: refused.message }));
  throw refused;
}

/** Fetch JSON; null where there is no content. */
export async function get(path, options) {
  const answer = await call(path, options);
  return answer.status === 204 ? null : answer.json();
}

/** Fetch text. */
export async function text(path, options) {
  return (await call(path, { accept: "text/plain, text/html, */*", ...options })).text();
}

/** POST JSON, or nothing, and return the answer's JSON. */
export function post(path, body, options) {
  return get(path, { ...options, method: "POST", body });
}

async function reason(answer) {
  const fallback = `The service answered ${answer.status} ${answer.statusText}`.trim();
  try {
    const { detail, title, fields } = await answer.json();
    // Some rules are checked later; their messages begin with the field's name.
    const [, field, text] = /^([a-z]+): (.*)$/s.exec(detail ?? "") ?? [];
    const known = fields && Object.keys(fields).length > 0;
    return { message: detail || title || fallback, fields: known ? fields : field ? { [field]: text } : {} };
  } catch {
    return { message: fallback, fields: {} };
  }
}

function retryAfter(answer) {
  const seconds = Number(answer.headers.get("Retry-After"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds : null;
}
