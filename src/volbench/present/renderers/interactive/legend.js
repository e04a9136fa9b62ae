"use strict";
// Buttons over a chart: zoom, and a legend whose entries switch series off and on.

/** @param {Chart} chart */
function toolsOf(chart) {
  const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) => {
    const own = made("button", { type: "button", onclick: act }, text);
    if (label) own.setAttribute("aria-label", label);
    return own;
  };
  const scale = (/** @type {number} */ factor) => () =>
    chart.zoom((a, b) => [(a + b - (b - a) * factor) / 2, (a + b + (b - a) * factor) / 2]);
  const move = (/** @type {number} */ share) => () => chart.zoom((a, b) => [a + (b - a) * share, b + (b - a) * share]);
  const zoom = made(
    "span",
    { className: "zoom" },
    button("+", "Zoom in", scale(0.5)),
    button("\u2212", "Zoom out", scale(2)),
    button("\u2190", "Move left", move(-0.5)),
    button("\u2192", "Move right", move(0.5)),
    button("Reset", "", () => chart.reset()),
  );
  chart.place.addEventListener("dblclick", () => chart.reset());
  const entries = entriesOf(chart);
  const toggles = made("span", { className: "toggles" }, ...entries);
  toggles.setAttribute("role", "group");
  toggles.setAttribute("aria-label", "Series");
  return made("div", { className: "tools" }, zoom, ...(entries.length ? [toggles] : []));
}

/**
 * Return a button for each label of the series; those with equal labels share it.
 * @param {Chart} chart
 * @returns {HTMLButtonElement[]}
 */
function entriesOf(chart) {
  /** @type {Map<string, string[]>} */
  const keys = new Map();
  for (const { label, key } of chart.plot.series) {
    if (label) keys.set(label, [...(keys.get(label) ?? []), key]);
  }
  const types = markTypes(chart.plot);
  return [...keys].map(([label, own]) => {
    const drawn = own.find((key) => types.has(key)) ?? own[0];
    const button = made("button", { type: "button" }, swatchOf(chart.looks, drawn, types.get(drawn) ?? "Points"), label);
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isShown));
      chart.toggle(own, isShown);
    });
    return button;
  });
}

/**
 * Return the type of mark that shows each series best.
 * @param {any} plot
 * @returns {Map<string, string>}
 */
function markTypes(plot) {
  const types = new Map();
  for (const type of ["Lines", "ReferenceLine", "Bars", "Areas", "Points"]) {
    for (const panel of plot.panels) {
      for (const mark of panel.marks) {
        if (mark.type !== type) continue;
        const keys = mark.by ? new Set(mark.table.get(mark.by)) : [mark.series];
        for (const key of keys) if (!types.has(key)) types.set(key, type === "ReferenceLine" ? "Lines" : type);
      }
    }
  }
  return types;
}

const SHAPES = {
  circle: "M12 3.5a3.5 3.5 0 1 0 .01 0z",
  square: "M8.5 3.5h7v7h-7z",
  up: "M12 3l4 7.5h-8z",
  diamond: "M12 2.5l4.5 4.5-4.5 4.5-4.5-4.5z",
  down: "M12 11l4-7.5h-8z",
  plus: "M10.8 3h2.4v2.8h2.8v2.4h-2.8v2.8h-2.4v-2.8h-2.8v-2.4h2.8z",
  cross: "M8.5 3.5l7 7m0-7l-7 7",
  left: "M8 7l7-4v8z",
  right: "M16 7l-7-4v8z",
  tick: "M12 2.5v9",
};

/**
 * Return a small picture of how a series looks.
 * @param {Looks} looks
 * @param {string} key
 * @param {string} type of its mark
 */
function swatchOf(looks, key, type) {
  const { marker, dash } = looks.of(key);
  const svg = element("svg", { class: "swatch", viewBox: "0 0 24 14", "aria-hidden": "true" });
  if (type === "Lines") svg.append(element("path", { d: "M1 7h22", class: "line", "stroke-dasharray": DASHES[dash].join(" ") }));
  const shape = /** @type {Record<string, string>} */ (SHAPES)[marker] ?? (type === "Points" ? SHAPES.circle : "");
  if (shape) svg.append(element("path", { d: shape, class: marker === "cross" || marker === "tick" ? "line" : "filled" }));
  if (type === "Bars" || type === "Areas") svg.append(element("path", { d: "M4 1h16v12h-16z", class: "filled" }));
  looks.paint(svg.style, { color: key });
  return svg;
}

/** @param {string} name @param {Record<string, string>} attributes */
function element(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
}
