// An axis of a picture: positions of values on the screen, and ticks with their labels.

const LOG_FEW_DECADES = 2;
const PREFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** The two ends of an axis for these values, with room beside the outermost. */
export function extent(axis, values) {
  const places = [...values, ...(axis.ticks ?? []).map(([place]) => place)];
  const drawn = places.filter((value) => Number.isFinite(value) && (!axis.log || value > 0));
  if (drawn.length === 0) return axis.log ? [0.1, 10] : [0, 1];
  // No spread of arguments: there may be many thousands.
  const low = drawn.reduce((least, value) => Math.min(least, value));
  const high = drawn.reduce((most, value) => Math.max(most, value));
  if (axis.log) {
    const factor = high > low ? (high / low) ** 0.05 : 1.5;
    return [low / factor, high * factor];
  }
  const room = high > low ? 0.05 * (high - low) : axis.whole ? 0.5 : Math.abs(0.1 * low) || 0.5;
  return [low - room, high + room];
}

/** The scale of an axis between the places `from` and `to` on the screen: `place(value)`, and back `value(place)`. */
export function scale(axis, [low, high], from, to) {
  const turned = axis.log ? Math.log10 : (value) => value;
  const [first, last] = axis.reverse ? [turned(high), turned(low)] : [turned(low), turned(high)];
  return {
    low,
    high,
    place: (value) => from + ((to - from) * (turned(value) - first)) / (last - first),
    value(place) {
      const found = first + ((place - from) / (to - from)) * (last - first);
      return axis.log ? 10 ** found : found;
    },
  };
}

/** The ticks of an axis between its ends, [[value, label], ...], about `most` of them. */
export function ticks(axis, [low, high], most) {
  if (axis.ticks) return axis.ticks.filter(([place]) => place >= low && place <= high);
  const few = Math.max(2, Math.floor(most));
  if (axis.log) {
    const found = decades(low, high, few);
    if (found.length > 1) return found.map((value) => [value, compact(value)]);
  }
  const step = nice((high - low) / few, axis.whole);
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high; at += 1) found.push(at * step);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return found.map((value) => [
    value,
    Math.max(Math.abs(low), Math.abs(high)) >= 1e5 ? compact(value) : value.toFixed(Math.min(digits, 12)),
  ]);
}

// 1, 2 and 5 of each decade if there are few decades.
function decades(low, high, most) {
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const parts = Math.log10(high / low) < LOG_FEW_DECADES ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((last - first) / most));
  const found = [];
  for (let decade = first; decade <= last; decade += every) found.push(...parts.map((part) => part * 10 ** decade));
  return found.filter((value) => value >= low && value <= high);
}

// Counts have no halves.
function nice(step, whole) {
  const power = 10 ** Math.floor(Math.log10(step));
  const wide = [1, 2, 5, 10].find((part) => part * power >= step * 0.999) * power;
  return whole ? Math.max(1, wide) : wide;
}

/** 368400000 -> "368M" */
export function compact(value) {
  const size = Math.abs(value);
  for (const [unit, prefix] of PREFIXES) {
    if (size >= unit) return `${Number((value / unit).toPrecision(3))}${prefix}`;
  }
  return size !== 0 && size < 1e-3 ? value.toExponential(0) : String(Number(value.toPrecision(3)));
}
