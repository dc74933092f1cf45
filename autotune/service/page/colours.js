// Colours of pictures. A figure comes without any: each trace says its role, and the style sheet has a colour for each.
// Only what needs no WebGL can be drawn: Plotly compiles text for that, which the page's policy forbids.

const KNOWN = [
  ...["trial", "best", "winner", "baseline", "band", "capped", "failed", "invalid", "paused", "rung"],
  ...["spent", "saved", "predicted", "measured", "guide", "bar"],
];
const SYMBOLS = {
  capped: "triangle-up",
  failed: "x",
  invalid: "cross",
  paused: "square",
  winner: "star",
  baseline: "diamond",
};
const SERIES = 8;

/** Return a copy of a figure {data, layout} in the colours of the page. */
export function coloured(figure) {
  const styles = getComputedStyle(document.documentElement);
  const read = (name) => styles.getPropertyValue(name).trim();
  const palette = {
    text: read("--text"),
    muted: read("--muted"),
    line: read("--line"),
    surface: read("--surface"),
    font: getComputedStyle(document.body).fontFamily,
    role: ({ role, number } = {}) => {
      if (role === "series") return read(`--series-${(number ?? 0) % SERIES}`);
      return read(`--role-${KNOWN.includes(role) ? role : "other"}`);
    },
  };
  const copy = structuredClone(figure);
  return {
    data: (copy.data ?? []).map((trace) => painted(trace, palette)),
    layout: framed(copy.layout ?? {}, copy.data ?? [], palette),
  };
}

/** How many panels stand side by side: too many for a phone. */
export function panelsAcross({ layout = {} }) {
  const starts = Object.entries(layout)
    .filter(([name]) => /^xaxis\d*$/.test(name))
    .map(([, axis]) => axis?.domain?.[0] ?? 0);
  return layout.meta?.columns ?? Math.max(new Set(starts).size, layout.grid?.columns ?? 1);
}

function painted(trace, palette) {
  const role = trace.meta?.role;
  const colour = palette.role(trace.meta);
  trace.marker = { ...trace.marker, color: colour };
  if (trace.type === "bar") {
    trace.textfont = { ...trace.textfont, color: palette.text };
  } else {
    trace.marker.symbol ??= SYMBOLS[role] ?? "circle";
    trace.marker.line = { width: 0.5, ...trace.marker.line, color: palette.surface };
    trace.line = { ...trace.line, color: colour };
    if (role === "baseline") trace.line.dash ??= "dash";
    if (role === "band") trace.line.width ??= 0;
    if (trace.fill && trace.fill !== "none")
      trace.fillcolor = trace.opacity === undefined ? translucent(colour) : colour;
  }
  for (const bars of ["error_x", "error_y"]) {
    if (trace[bars]) trace[bars] = { ...trace[bars], color: trace.type === "bar" ? palette.text : colour };
  }
  return trace;
}

function framed(layout, data, palette) {
  delete layout.template;
  const narrow = innerWidth < 640;
  const framing = {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...layout.font, color: palette.text, family: palette.font, size: 13 },
    hoverlabel: { bgcolor: palette.surface, bordercolor: palette.line, font: { color: palette.text } },
    // What was zoomed stays so when new trials come in.
    uirevision: "kept",
    legend: {
      orientation: "h",
      x: 0,
      xanchor: "left",
      y: 1.02,
      yanchor: "bottom",
      ...layout.legend,
      bgcolor: "rgba(0,0,0,0)",
    },
    margin: { l: narrow ? 48 : 64, r: 16, t: 32, b: 48, ...layout.margin },
    // A finger that scrolls the page must not zoom the picture.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : (layout.dragmode ?? "zoom"),
  };
  // The heading above the picture has it already.
  delete framing.title;
  const axes = Object.keys(framing).filter((name) => /^[xy]axis\d*$/.test(name));
  const used = data.flatMap(({ xaxis = "x", yaxis = "y" }) => [xaxis, yaxis]);
  for (const name of [...axes, ...used.map((axis) => `${axis[0]}axis${axis.slice(1)}`)]) {
    framing[name] = {
      automargin: true,
      ...framing[name],
      gridcolor: palette.line,
      zerolinecolor: palette.line,
      linecolor: palette.muted,
      tickcolor: palette.line,
    };
  }
  framing.annotations = layout.annotations?.map((one) => ({ ...one, font: { ...one.font, color: palette.text } }));
  framing.shapes = layout.shapes?.map((one) => ({
    ...one,
    line: { ...one.line, color: palette.role({ role: one.name }) },
    ...(one.fillcolor ? { fillcolor: translucent(palette.role({ role: one.name })) } : {}),
  }));
  for (const name of ["annotations", "shapes"]) {
    if (framing[name] === undefined) delete framing[name];
  }
  return framing;
}

// "#1a2b3c" -> "rgba(26,43,60,0.2)"
function translucent(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},0.2)`;
}
