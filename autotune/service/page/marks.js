// The outlines of marks: points, lines, bands, bars and the ends of intervals, as the text of an SVG path.

const SYMBOLS = {
  winner: "star",
  baseline: "diamond",
  measured: "diamond",
  capped: "triangle",
  failed: "saltire",
  invalid: "cross",
};
const OF_SERIES = ["circle", "square", "diamond", "triangle", "star", "cross", "saltire", "circle"];
const OPEN = ["capped", "paused", "predicted"];
const SIZES = { winner: 7, baseline: 5.5, measured: 5, capped: 4.2 };
const SIZE = 3.6;
const CAP = 4;
const BAR_SHARE = 0.7;

const OUTLINES = {
  circle: (x, y, r) => `M${fine(x - r)} ${fine(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
  square: (x, y, r) => `M${fine(x - r)} ${fine(y - r)}h${2 * r}v${2 * r}h${-2 * r}z`,
  diamond: (x, y, r) => `M${fine(x)} ${fine(y - r)}l${r} ${r}l${-r} ${r}l${-r} ${-r}z`,
  triangle: (x, y, r) => `M${fine(x)} ${fine(y - r)}l${r} ${1.7 * r}h${-2 * r}z`,
  saltire: (x, y, r) => `M${fine(x - r)} ${fine(y - r)}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`,
  cross: (x, y, r) => `M${fine(x - r)} ${fine(y)}h${2 * r}m${-r} ${-r}v${2 * r}`,
  star(x, y, r) {
    const corners = Array.from({ length: 10 }, (_, at) => {
      const [angle, far] = [(Math.PI * at) / 5, at % 2 ? 0.42 * r : r];
      return `${fine(x + far * Math.sin(angle))} ${fine(y - far * Math.cos(angle))}`;
    });
    return `M${corners.join("L")}z`;
  },
};

/** The look of a mark's points: `outline`, `size`, and whether they are `open` or only `stroked`. */
export function symbolOf({ role, number = 0 }) {
  const outline = role === "series" ? OF_SERIES[number % OF_SERIES.length] : (SYMBOLS[role] ?? "circle");
  const stroked = outline === "saltire" || outline === "cross";
  return { outline, open: OPEN.includes(role), stroked, size: SIZES[role] ?? SIZE };
}

/** The path of all points of a mark. */
export function pointPath(mark, x, y, size) {
  const drawn = OUTLINES[symbolOf(mark).outline];
  return mark.x.map((value, at) => drawn(x.place(value), y.place(mark.y[at]), size)).join("");
}

/** The path of a line; null is a gap, and with `steps` the line stays level until the next point. */
export function linePath(mark, x, y) {
  let path = "";
  let gap = true;
  mark.x.forEach((value, at) => {
    if (value === null || mark.y[at] === null) {
      gap = true;
      return;
    }
    const [across, down] = [fine(x.place(value)), fine(y.place(mark.y[at]))];
    path += gap ? `M${across} ${down}` : mark.steps ? `H${across}V${down}` : `L${across} ${down}`;
    gap = false;
  });
  return path;
}

/** The path around the area between two lines. */
export function bandPath(mark, x, y) {
  const upper = corners(mark, mark.high);
  const lower = corners(mark, mark.low).reverse();
  return `M${[...upper, ...lower].map(([across, down]) => `${fine(x.place(across))} ${fine(y.place(down))}`).join("L")}z`;
}

function corners({ x, steps }, values) {
  return x.flatMap((value, at) =>
    steps && at > 0
      ? [
          [value, values[at - 1]],
          [value, values[at]],
        ]
      : [[value, values[at]]],
  );
}

/** A horizontal bar: its path, its two ends, and half its height. */
export function barOf(mark, at, x, y) {
  const start = x.place(mark.starts?.[at] ?? Math.max(0, x.low));
  // Keep a bar of length zero visible.
  const end = Math.max(x.place(mark.values[at]), start + 1);
  const middle = y.place(mark.y[at]);
  const half = (BAR_SHARE * Math.abs(y.place(1) - y.place(0))) / 2;
  const path = `M${fine(start)} ${fine(middle - half)}H${fine(end)}v${fine(2 * half)}H${fine(start)}z`;
  return { path, half, start, end: { x: end, y: middle } };
}

/** The path of the intervals of points or bars. */
export function errorPath(mark, x, y) {
  const across = mark.sideways || mark.kind === "bars";
  return mark.low
    .map((low, at) => {
      const [first, last] = [low, mark.high[at]].map((value) => fine((across ? x : y).place(value)));
      const middle = fine(across ? y.place(mark.y[at]) : x.place(mark.x[at]));
      return across
        ? `M${first} ${middle}H${last}M${first} ${middle - CAP}v${2 * CAP}M${last} ${middle - CAP}v${2 * CAP}`
        : `M${middle} ${first}V${last}M${middle - CAP} ${first}h${2 * CAP}M${middle - CAP} ${last}h${2 * CAP}`;
    })
    .join("");
}

function fine(place) {
  return Math.round(10 * place) / 10;
}
