// Builds elements. Data only become text nodes and attributes, so that a hostile name cannot become markup.

/**
 * Make an element. `attributes`: `class`, `on` ({event: handler}), `data` (dataset); true and false add and leave out a
 * bare attribute; everything else is set as it is. `children`: elements, texts, or lists of them; null is left out.
 */
export function h(tag, attributes = {}, ...children) {
  return made(document.createElement(tag), attributes, children);
}

/** The same for an element of SVG. */
export function s(tag, attributes = {}, ...children) {
  return made(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function made(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else if (name === "data") {
      Object.assign(element.dataset, value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...flat(children));
  return element;
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
}

/** Set a text only if it differs, so that unchanged text is not drawn or read out again. */
export function setText(element, text) {
  const wanted = String(text ?? "");
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Return a function that calls `draw(data)` only when the data differ from the last time. */
export function onChange(draw) {
  let last;
  return (data) => {
    const key = JSON.stringify(data);
    if (key === last) return;
    last = key;
    draw(data);
  };
}

/** Return a function that calls `work` at once, then at most once in `gap_ms`; the last call is never lost. */
export function throttled(work, gap_ms) {
  let timer = null;
  let again = false;
  const run = () => {
    timer = setTimeout(
      () => {
        timer = null;
        if (again) {
          again = false;
          run();
        }
      },
      typeof gap_ms === "function" ? gap_ms() : gap_ms,
    );
    work();
  };
  const call = () => {
    if (timer === null) run();
    else again = true;
  };
  call.cancel = () => {
    clearTimeout(timer);
    timer = null;
    again = false;
  };
  return call;
}

let names = 0;
/** Return a fresh id, to tie a label or a description to an element. */
export function freshId(stem) {
  names += 1;
  return `${stem}-${names}`;
}

/** A text that may break after "_", "," and "/", where a name has parts. */
export function breakable(text) {
  return String(text)
    .split(/(?<=[_,/])/)
    .flatMap((part, at) => (at === 0 ? [part] : [document.createElement("wbr"), part]));
}

/** A sentence of the service, with what stands between backticks as code. */
export function prose(text) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? h("code", {}, part) : part));
}

function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}
