"use strict";
// Plot descriptions as the page carries them: compressed, with a table of columns for each frame.

/** @typedef {(number | string | null)[] | Float32Array} Column */
/** @typedef {Map<string, Column>} Table */

/**
 * @param {string} base64
 * @returns {Uint8Array}
 */
const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

/** @param {string} base64 of gzip */
async function unpacked(base64) {
  const stream = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).blob();
}

/** @param {string} id of a template element with base64 of gzip */
async function payload(id) {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById(id));
  return (await unpacked(template.content.textContent ?? "")).text();
}

/**
 * Return a column of the JSON form; NaN or null where a value is missing.
 * @param {any} form
 * @returns {Column}
 */
function decodedColumn(form) {
  if (form.floats !== undefined) return new Float32Array(bytesOf(form.floats).buffer);
  if (form.texts !== undefined) return form.places.map((/** @type {number} */ place) => form.texts[place] ?? null);
  return form.values.map((/** @type {number | null} */ value) => value ?? NaN);
}

/**
 * @param {Record<string, any>} form
 * @returns {Table}
 */
const decodedTable = (form) => new Map(Object.entries(form).map(([name, column]) => [name, decodedColumn(column)]));

/**
 * Return part of a description with the attributes that were left out because they have their default.
 * @param {string} type
 * @param {any} form
 */
const completed = (type, form) => ({ ...SETTINGS.defaults[type], ...form });

/** @param {any} form as `json_form` gives it */
function decodedPlot(form) {
  const plot = completed("Plot", form);
  plot.series = plot.series.map((/** @type {any} */ series) => completed("Series", series));
  plot.tables = form.tables.map(decodedTable);
  plot.panels = form.panels.map((/** @type {any} */ own) => {
    const panel = completed("Panel", own);
    panel.x = completed("Axis", own.x);
    panel.y = completed("Axis", own.y);
    panel.marks = own.marks.map((/** @type {any} */ mark) => {
      const table = mark.table === undefined ? new Map() : plot.tables[mark.table];
      return { ...completed(mark.type, mark), table };
    });
    return panel;
  });
  return plot;
}

/**
 * Return the rows of each series of a mark, and of each value of `group` in it.
 * @param {any} mark
 * @param {string} group column; empty for none
 * @returns {{key: string, rows: number[]}[]}
 */
function groupedRows(mark, group) {
  const first = mark.table.values().next().value ?? [];
  const keys = mark.by ? mark.table.get(mark.by) : null;
  const groups = group ? mark.table.get(group) : null;
  /** @type {Map<string, {key: string, rows: number[]}>} */
  const found = new Map();
  for (let row = 0; row < first.length; row++) {
    const key = String(keys ? keys[row] : mark.series);
    const place = `${key}\n${groups ? groups[row] : ""}`;
    let entry = found.get(place);
    if (!entry) found.set(place, (entry = { key, rows: [] }));
    entry.rows.push(row);
  }
  return [...found.values()];
}

/**
 * Return numbers of some rows of a column.
 * @param {any} mark
 * @param {string} column
 * @param {number[]} rows
 * @returns {number[]}
 */
function numbersOf(mark, column, rows) {
  const values = mark.table.get(column);
  return rows.map((row) => Number(values[row] ?? NaN));
}
