// Times, counts and configurations as text. Values of metrics and gains come from the service as text.

const NO = "–";

/** A number with this many significant digits: 3.349 -> "3.35". */
export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NO;
  const rounded = Number(value.toPrecision(digits));
  const size = Math.abs(rounded);
  if (size !== 0 && (size >= 1e7 || size < 1e-4)) {
    // Two digits in the exponent, as Python writes it: 1.2e-05.
    return rounded.toExponential().replace(/(e[+-])(\d)$/, (_, sign, digit) => `${sign}0${digit}`);
  }
  // Keep all digits before the point: 12345 stays 12345.
  if (size >= 10 ** digits) return String(Math.sign(value) * Math.round(Math.abs(value)));
  return String(rounded);
}

/** Seconds as a duration: "3.4 s", "12 min 05 s", "3 h 12 min", "2 d 3 h". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return NO;
  if (seconds < 10) return `${number(seconds, 2)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Whole seconds that tick: "0 s", "59 s", "1 min 00 s". */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds ?? 0));
  return whole < 10 ? `${whole} s` : duration(whole);
}

/** Core-seconds, as core-hours from an hour on. */
export function coreTime(core_s) {
  if (core_s === null || core_s === undefined || !Number.isFinite(core_s)) return NO;
  return core_s >= 3600 ? `${number(core_s / 3600, 3)} core-h` : `${number(core_s, 3)} core-s`;
}

/** The title of ratios to the default. */
export function ratioTitle(metric) {
  return metric?.quality ? "Gain" : "Speed-up";
}

/** "1 trial", "3 trials" */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** "np=2 npool=1", without unset parameters. */
export function configuration(values) {
  const set = Object.entries(values ?? {}).filter(([, value]) => value !== null && value !== undefined);
  return set.map(([name, value]) => `${name}=${plain(value)}`).join(" ") || "nothing set";
}

/** What a configuration changes of the default, "npool=2 ndiag=unset"; all of it if the default is not known. */
export function changes(values, defaults) {
  if (!defaults) return configuration(values);
  const names = [...new Set([...Object.keys(defaults), ...Object.keys(values ?? {})])];
  const changed = names.filter((name) => (values?.[name] ?? null) !== (defaults[name] ?? null));
  return changed.map((name) => `${name}=${plain(values?.[name])}`).join(" ") || "the default";
}

/** A value of a parameter or a fact as text. */
export function plain(value) {
  if (value === null || value === undefined) return "unset";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** {"timed out": 2, "application error": 3} -> "2 timed out, 3 application errors" */
export function failures(counts) {
  return Object.entries(counts ?? {})
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}${count > 1 && /(?:error|result)$/.test(kind) ? "s" : ""}`)
    .join(", ");
}

function pad(value) {
  return String(value).padStart(2, "0");
}
