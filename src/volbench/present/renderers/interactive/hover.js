"use strict";
// Hover texts: the columns of the row that is pointed at, as people write them and exactly.

/** Ending of a column to the unit of its values, the first that fits. */
const UNITS = [["_bytes_per_s", "B/s"], ["_bytes", "B"], ["_percent", "%"], ["_s", "s"]];

/**
 * Show the row of a mark's table that is pointed at.
 * @param {Drawing} drawing
 * @param {any} mark
 * @param {any} renderer
 */
function addHover(drawing, mark, renderer) {
  const columns = hoverColumns(mark);
  if (!columns.length) return;
  const formatter = model("CustomJSHover");
  formatter.format = (/** @type {number} */ row, /** @type {string} */ column) => {
    const [name, format] = columns[Number(column)];
    const value = mark.table.get(name)[row];
    const isNumber = typeof value === "number" && !Number.isNaN(value);
    const text = format && isNumber ? FORMATS[format](value) : columnText(name, value);
    return isNumber && !SETTINGS.identity.includes(name) ? withExact(text, name, value) : text;
  };
  drawing.figure.add_tools(model("HoverTool", {
    renderers: [renderer],
    tooltips: columns.map(([name], n) => [columnTitle(name), `@row{${n}}`]),
    formatters: { "@row": formatter },
    line_policy: "nearest",
    attachment: "horizontal",
  }));
}

/**
 * Return a text with the value behind it, to the seven digits that the page carries, and its unit.
 * @param {string} text
 * @param {string} column
 * @param {number} value
 */
function withExact(text, column, value) {
  const unit = UNITS.find(([ending]) => column.endsWith(ending))?.[1] ?? "";
  const digits = Number(value.toPrecision(7)).toLocaleString("en-US", { maximumSignificantDigits: 7 });
  const exact = `${digits} ${unit}`.trim();
  return exact === text || digits === text ? text : `${text} (${exact})`;
}

/** @param {string} column */
const columnTitle = (column) => column.replace(/^label_/, "").replace(/_(bytes_per_s|bytes|s)$/, "").replaceAll("_", " ");

/**
 * Return the columns that are shown, each with its format; of identity only what differs.
 * @param {any} mark
 * @returns {[string, string][]}
 */
function hoverColumns(mark) {
  const names = [...mark.table.keys()].filter((name) => !name.startsWith("_"));
  const shown = names.filter((name) => {
    const values = [...mark.table.get(name)];
    const isKnown = values.some((value) => value !== null && !Number.isNaN(value));
    const isShared = values.every((value) => value === values[0]);
    return isKnown && (!isShared || !SETTINGS.identity.includes(name) || ["label", "direction"].includes(name));
  });
  const first = SETTINGS.identity.filter((name) => shown.includes(name));
  const rest = shown.filter((name) => !first.includes(name));
  return [...first, ...rest].map((name) => [name, formatOf(mark, name)]);
}

/** @param {any} mark @param {string} column */
function formatOf(mark, column) {
  if (mark.type === "Cells" && column === mark.value) return mark.format;
  return mark.formats?.[column] ?? "";
}
