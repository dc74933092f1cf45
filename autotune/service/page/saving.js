// Saves content of the page as a file.

import { h, s } from "./dom.js";

const SHARP = 2;
const TITLE = 30; // the height of the line above a picture
const LETTER = 6.6;
const KEPT_MS = 60_000;

/** Save a text or a blob under a name. */
export function saveFile(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: url, download: name.replace(/[^\w.-]+/g, "_") }).click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}

/** Save a picture as SVG, with a line above it. */
export function saveSvg(svg, name, title) {
  saveFile(`${name}.svg`, alone(svg, title), "image/svg+xml");
}

/** Save a picture as PNG, with a line above it. */
export async function savePng(svg, name, title) {
  const { width, height } = svg.viewBox.baseVal;
  const image = new Image(SHARP * width, SHARP * (height + TITLE));
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(alone(svg, title))}`;
  await image.decode();
  const canvas = h("canvas", { width: SHARP * width, height: SHARP * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => saveFile(`${name}.png`, blob), "image/png");
}

// A standalone picture, with colours and font inlined, since it has no style sheet outside the page.
function alone(svg, title) {
  const { width, height } = svg.viewBox.baseVal;
  const copy = svg.cloneNode(true);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  copy.prepend(
    s("rect", { y: -TITLE, width: "100%", height: "100%", fill: colour("--surface") }),
    s("text", { x: 4, y: -11, fill: colour("--text"), "font-weight": 600, textLength: title.length * LETTER > width ? width - 8 : null }, title),
  );
  copy.setAttribute("viewBox", `0 ${-TITLE} ${width} ${height + TITLE}`);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height + TITLE);
  copy.setAttribute("font-family", getComputedStyle(document.body).fontFamily);
  copy.removeAttribute("class");
  copy.removeAttribute("style");
  const text = new XMLSerializer().serializeToString(copy);
  return text.replace(/var\((--[\w-]+)(?:, *var\((--[\w-]+)\))?\)/g, (_, name, other) => colour(name) || colour(other));
}
