// Draws a picture's panels as SVG. A mark is one path, so that thousands of points are drawn in milliseconds.
// Colours are names of the style sheet, one per role, so that switching to dark mode redraws nothing.

import { extent, scale, ticks } from "./axis.js";
import { freshId, s } from "./dom.js";
import { barOf, bandPath, errorPath, linePath, pointPath, symbolOf } from "./marks.js";

const FONT = 12;
const LETTER = 6.6;
const LINE = 18;
const GAP = 26;
const PANEL_WIDE = 300;
const ALONE = 320;
const ONE_OF_MANY = 210;
const BAR = 30;
const THIN_BAR = 20;
const LETTERS = 24;
const SLANT = 40;
const DOWN = Math.sin((SLANT * Math.PI) / 180);
const ACROSS = Math.cos((SLANT * Math.PI) / 180);
const SERIES = 8;
const OPACITY = { trial: 0.75, paused: 0.6, capped: 0.8 };
// Many overlapping lines are faint; the few that matter are drawn on top.
const FAINT = { trial: 0.8, paused: 0.7, capped: 0.5 };
const WIDTH = { best: 2.5, winner: 3, baseline: 2, series: 2 };
const DASH = { baseline: "6 4", rung: "2 3", guide: "2 3" };

/** The least width at which a figure is readable. */
export const LEAST_WIDTH = 280;

/**
 * Draw a figure into an <svg> of this width. `zooms` has the visible range of each panel, {x: [low, high], y}.
 * Returns the panels as drawn: `box`, the scales `x` and `y`, and `spots`, the points that react to the pointer.
 */
export function draw(svg, figure, width, zooms) {
  const across = Math.max(1, Math.min(figure.columns, figure.panels.length, Math.floor((width + GAP) / PANEL_WIDE)));
  const each = (width - GAP * (across - 1)) / across;
  const plans = figure.panels.map((panel, at) => planned(panel, each, zooms[at], figure.panels.length === 1));
  const [legend, top] = legendOf(figure.panels, width);
  const parts = [legend];
  let y = top;
  for (let row = 0; row < plans.length; row += across) {
    const plansHere = plans.slice(row, row + across);
    const above = Math.max(...plansHere.map((plan) => plan.above));
    const high = Math.max(...plansHere.map((plan) => plan.high));
    plansHere.forEach((plan, column) => {
      const box = { left: column * (each + GAP) + plan.left, top: y + above, width: plan.wide, height: plan.high };
      parts.push(placed(plan, box, column * (each + GAP)));
    });
    y += above + high + Math.max(...plansHere.map((plan) => plan.below)) + GAP / 2;
  }
  svg.setAttribute("viewBox", `0 0 ${width} ${Math.ceil(y)}`);
  svg.setAttribute("font-size", FONT);
  svg.replaceChildren(...parts.filter(Boolean));
  return plans.map(({ box, x, y: vertical, spots }) => ({ box, x, y: vertical, spots }));
}

// The plan of a panel before it is placed: the room for its labels.
function planned(panel, each, zoom, alone) {
  const bars = new Set(panel.marks.filter(({ kind }) => kind === "bars").flatMap(({ y }) => y)).size;
  const high = bars > 0 ? Math.max(110, bars * (alone ? BAR : THIN_BAR)) : alone ? ALONE : ONE_OF_MANY;
  const xEnds = zoom?.x ?? ends(panel.x, panel, "x", bars > 0);
  const yEnds = zoom?.y ?? ends(panel.y, panel, "y", bars > 0);
  const yTicks = ticks(panel.y, yEnds, high / 44).map(([place, words]) => [place, cut(words, LETTERS)]);
  const right = 10;
  let left = Math.min(0.45 * each, 12 + longest(yTicks));
  const xTicks = ticks(panel.x, xEnds, (each - left - right) / 64).map(([place, words]) => [
    place,
    cut(words, LETTERS),
  ]);
  const slanted = panel.x.ticks !== null && !fits(xTicks, scale(panel.x, xEnds, 0, each - left - right));
  if (slanted) left = Math.max(left, Math.min(0.45 * each, ACROSS * (xTicks[0]?.[1].length ?? 0) * LETTER));
  const below =
    (xTicks.length > 0 ? 8 + (slanted ? DOWN * longest(xTicks) + 12 : FONT + 2) : 4) + (panel.x.title ? LINE : 0);
  const above = (panel.title ? LINE : 0) + (panel.y.title ? LINE : 0) + 8;
  return { panel, xEnds, yEnds, xTicks, yTicks, slanted, left, wide: each - left - right, high, above, below };
}

function ends(axis, { marks }, way, barred) {
  const found = [];
  for (const mark of marks) {
    found.push(...many(mark.kind === "bars" && way === "x" ? mark.values : mark[way]));
    const intervals = mark.sideways || mark.kind === "bars" ? "x" : "y";
    if (way === intervals) found.push(...many(mark.low), ...many(mark.high));
  }
  if (!barred) return extent(axis, found);
  if (way === "x") return [0, extent(axis, [0, ...found])[1]];
  const known = found.filter(Number.isFinite);
  return [Math.min(...known) - 0.6, Math.max(...known) + 0.6];
}

function many(values) {
  return (values ?? []).filter((value) => value !== null);
}

function cut(words, letters) {
  return words.length > letters ? `${words.slice(0, letters - 1)}…` : words;
}

function longest(found) {
  return LETTER * Math.max(0, ...found.map(([, words]) => words.length));
}

function fits(found, along) {
  return found.every(([place, words], at) => {
    if (at === 0) return true;
    const [before, others] = found[at - 1];
    return Math.abs(along.place(place) - along.place(before)) >= (LETTER * (words.length + others.length)) / 2 + 6;
  });
}

// Draws a panel at its place, and adds its scales to its plan.
function placed(plan, box, edge) {
  const { panel } = plan;
  const x = scale(panel.x, plan.xEnds, box.left, box.left + box.width);
  const y = scale(panel.y, plan.yEnds, box.top + box.height, box.top);
  const clip = freshId("clip");
  const spots = [];
  Object.assign(plan, { box, x, y, spots });
  const marks = panel.marks.map((mark) => marked(mark, x, y, spots));
  // Room to draw points at the edge whole.
  const room = { x: box.left - 8, y: box.top - 8, width: box.width + 16, height: box.height + 16 };
  return s(
    "g",
    { class: "panel" },
    s("clipPath", { id: clip }, s("rect", room)),
    titles(plan, edge),
    grid(plan, x, y),
    s("g", { "clip-path": `url(#${clip})` }, marks),
  );
}

function titles({ panel, box, above, below, high }, edge) {
  const top = box.top - 8;
  return [
    panel.title ? word(panel.title, edge, panel.y.title ? top - LINE : top, { "font-weight": "600" }) : null,
    panel.y.title ? word(panel.y.title, edge, top, { muted: true }) : null,
    panel.x.title
      ? word(panel.x.title, box.left + box.width / 2, box.top + high + below - 6, { anchor: "middle", muted: true })
      : null,
  ];
}

function grid({ panel, box, xTicks, yTicks, slanted }, x, y) {
  const bottom = box.top + box.height;
  const lines = [
    ...xTicks.map(([value]) => `M${fine(x.place(value))} ${box.top}V${fine(bottom)}`),
    ...yTicks.map(([value]) => `M${box.left} ${fine(y.place(value))}H${fine(box.left + box.width)}`),
  ];
  const every = slanted ? Math.max(1, Math.ceil((13 * xTicks.length) / box.width)) : 1;
  const across = xTicks
    .filter((_, at) => at % every === 0)
    .map(([value, words]) => {
      const [left, top] = [x.place(value), bottom + (slanted ? 12 : FONT + 6)];
      return slanted
        ? word(words, left + 3, top, { anchor: "end", transform: `rotate(-${SLANT} ${fine(left + 3)} ${fine(top)})` })
        : word(words, left, top, { anchor: "middle" });
    });
  const down = yTicks.map(([value, words]) => word(words, box.left - 6, y.place(value) + 4, { anchor: "end" }));
  return [s("path", { d: lines.join(""), stroke: "var(--line)", fill: "none" }), across, down];
}

function word(text, x, y, { anchor = "start", muted = false, ...more } = {}) {
  const colour = muted ? "var(--muted)" : "var(--text)";
  return s("text", { x: fine(x), y: fine(y), "text-anchor": anchor, fill: colour, ...more }, text);
}

function colourOf({ role, number = 0 }) {
  return role === "series" ? `var(--series-${number % SERIES})` : `var(--role-${role}, var(--role-other))`;
}

// Returns the SVG of a mark, and adds its points to `spots`.
function marked(mark, x, y, spots) {
  const colour = colourOf(mark);
  const about = { class: `mark ${mark.kind}`, "data-role": mark.role };
  if (mark.kind === "band") {
    return s("path", { ...about, d: bandPath(mark, x, y), fill: colour, "fill-opacity": 0.2 });
  }
  if (mark.kind === "bars") {
    const bars = mark.y.map((_, at) => barOf(mark, at, x, y));
    bars.forEach((bar, at) => mark.hover && spots.push({ ...bar.end, bar, text: mark.hover[at] }));
    return s(
      "g",
      {},
      s("path", { ...about, d: bars.map((bar) => bar.path).join(""), fill: colour }),
      mark.low
        ? s("path", { d: errorPath(mark, x, y), stroke: "var(--text)", fill: "none", "stroke-width": 1.5 })
        : null,
    );
  }
  (mark.hover ?? []).forEach((text, at) => {
    if (text && mark.x[at] !== null) spots.push({ x: x.place(mark.x[at]), y: y.place(mark.y[at]), text });
  });
  if (mark.kind === "line") return lined(mark, about, colour, linePath(mark, x, y));
  const { open, stroked, size } = symbolOf(mark);
  const look = open || stroked ? { fill: "none", stroke: colour, "stroke-width": 1.6 } : { fill: colour };
  const seam = look.fill === "none" ? {} : { stroke: "var(--surface)", "stroke-width": 0.5 };
  const opacity = mark.low ? null : OPACITY[mark.role];
  const points = s("path", { ...about, ...look, ...seam, d: pointPath(mark, x, y, size), opacity });
  if (!mark.low) return points;
  const errors = s("path", { d: errorPath(mark, x, y), stroke: colour, fill: "none", "stroke-width": 1.5 });
  return s("g", {}, errors, points);
}

function lined(mark, about, colour, d) {
  const several = mark.x.includes(null);
  return s("path", {
    ...about,
    d,
    fill: "none",
    stroke: colour,
    "stroke-width": several && mark.role === "best" ? 1.2 : (WIDTH[mark.role] ?? 1.2),
    "stroke-dasharray": several && mark.role === "baseline" ? null : (DASH[mark.role] ?? null),
    opacity: (several ? FAINT : OPACITY)[mark.role] ?? 1,
  });
}

// The legend, with each label once, in rows of the picture's width; and its height.
function legendOf(panels, width) {
  const known = new Map();
  for (const { marks } of panels) {
    for (const mark of marks) if (mark.label && !known.has(mark.label)) known.set(mark.label, mark);
  }
  if (known.size < 2) return [null, 0];
  let [left, top] = [0, FONT];
  const items = [...known.values()].map((mark) => {
    const wide = 30 + LETTER * mark.label.length;
    if (left > 0 && left + wide > width) [left, top] = [0, top + LINE];
    const item = s("g", { transform: `translate(${fine(left)} ${top})` }, key(mark), word(mark.label, 22, 0));
    left += wide;
    return item;
  });
  return [s("g", { class: "legend" }, items), top + FONT];
}

function key(mark) {
  const colour = colourOf(mark);
  const [x, y] = [{ place: () => 9 }, { place: () => -4 }];
  if (["band", "bars"].includes(mark.kind)) {
    return s("rect", {
      x: 0,
      y: -10,
      width: 18,
      height: 11,
      fill: colour,
      "fill-opacity": mark.kind === "band" ? 0.3 : 1,
    });
  }
  if (mark.kind === "line") {
    const dashed = mark.x.includes(null) ? null : (DASH[mark.role] ?? null);
    return s("path", { d: "M0 -4H18", stroke: colour, "stroke-width": 2, "stroke-dasharray": dashed });
  }
  const { open, stroked, size } = symbolOf(mark);
  const look = open || stroked ? { fill: "none", stroke: colour, "stroke-width": 1.6 } : { fill: colour };
  return s("path", { ...look, d: pointPath({ ...mark, x: [0], y: [0] }, x, y, size) });
}

function fine(place) {
  return Math.round(10 * place) / 10;
}
