"use strict";
// Runs of the page as columns, and which of them the filters keep.

/** Column to the name of its filter and the format of its values. */
const DIMENSIONS = /** @type {[string, string, string][]} */ ([
  ["campaign", "Campaign", ""],
  ["job", "Job", ""],
  ["rw", "Pattern", ""],
  ["direction", "Direction", ""],
  ["block_bytes", "Block size", "size"],
  ["iodepth", "Queue depth", "count"],
  ["numjobs", "numjobs", "count"],
  ["host", "Host", ""],
  ["volume", "Volume", ""],
  ["phase", "Phase", ""],
]);
/** Columns that say which runs a row of a chart is about, where it has them. */
const IDENTITIES = ["run", "campaign", "job", "group", "host", "volume", "direction", "rw", "block_bytes", "iodepth", "numjobs", "repeat"];
const LABEL = "label_";

/** Rows of runs: one for each run, section and direction. */
class Runs {
  /** @param {Table} table */
  constructor(table) {
    this.table = table;
    this.length = this.column("number").length;
    this.kept = new Uint8Array(this.length).fill(1);
    this.isFiltered = false;
    this.dimensions = this.#dimensions();
    /** @type {Map<string, {row: number}[]>} */
    this.found = new Map();
  }

  /** @param {string} name @returns {any} */
  column(name) {
    return this.table.get(name) ?? [];
  }

  /** @param {string} name @param {number} row @returns {any} */
  value(name, row) {
    return this.table.get(name)?.[row];
  }

  /** @returns {[string, string, string][]} those in which runs differ */
  #dimensions() {
    const labels = [...this.table.keys()].filter((name) => name.startsWith(LABEL));
    const named = /** @type {[string, string, string][]} */ (labels.map((name) => [name, name.slice(LABEL.length), ""]));
    return [...DIMENSIONS, ...named].filter(([name]) => this.valuesOf(name).length > 1);
  }

  /**
   * Return the distinct values of a column, as they are compared and shared; numbers ascending.
   * @param {string} name
   * @returns {string[]}
   */
  valuesOf(name) {
    const values = [...new Set(this.column(name))].filter((value) => value !== null && value !== "" && !Number.isNaN(value));
    values.sort((a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true })));
    return values.map(String);
  }

  /**
   * Return whether parameters of a view let a row through; null if they filter nothing.
   * @param {URLSearchParams} params
   * @returns {((row: number) => boolean) | null}
   */
  matcher(params) {
    const chosen = this.dimensions
      .map(([name]) => /** @type {[string, Set<string>]} */ ([name, new Set(params.getAll(name))]))
      .filter(([, values]) => values.size);
    const isAffected = params.has("affected");
    if (!isAffected && !chosen.length) return null;
    return (row) => chosen.every(([name, values]) => values.has(String(this.value(name, row))))
      && (!isAffected || this.value("severity", row) !== "");
  }

  /** Keep the rows that the view's parameters let through. */
  filter() {
    const lets = this.matcher(view.params);
    this.isFiltered = lets !== null;
    for (let row = 0; row < this.length; row++) this.kept[row] = Number(!lets || lets(row));
    this.numbers = new Set();
    this.ways = new Set();
    for (const row of this.rows()) {
      const number = this.value("number", row);
      this.numbers.add(number);
      this.ways.add(`${number} ${this.value("direction", row)}`);
    }
  }

  /** @returns {number[]} the rows that are kept */
  rows() {
    return Array.from({ length: this.length }, (_, row) => row).filter((row) => this.kept[row]);
  }

  /**
   * Return whether a row of a table is about a run that is kept.
   * @param {number[]} numbers of its runs; none for a row about no run
   * @param {string} direction empty for all
   */
  keeps(numbers, direction) {
    if (!this.isFiltered || !numbers.length) return true;
    return numbers.some((number) => (direction ? this.ways?.has(`${number} ${direction}`) : this.numbers?.has(number)));
  }

  /**
   * Return the rows of runs that a row of a chart is about; empty if it does not say.
   * @param {Table} table
   * @param {number} row
   * @returns {number[]}
   */
  behind(table, row) {
    const own = table.get("_runs");
    if (own) return String(own[row]).split(" ").map(Number);
    const identity = (/** @type {string} */ name) => (table.get(name) ?? table.get(`_${name}`))?.[row];
    const known = IDENTITIES.filter((name) => this.table.has(name) && !isMissing(identity(name)));
    if (!known.some((name) => ["run", "job", "rw"].includes(name))) return [];
    const key = known.map((name) => `${name} ${identity(name)}`).join("\n");
    let rows = /** @type {any} */ (this.found.get(key));
    if (!rows) {
      rows = [];
      for (let other = 0; other < this.length; other++) {
        if (known.every((name) => this.value(name, other) === identity(name))) rows.push(other);
      }
      this.found.set(key, rows);
    }
    return rows;
  }

  /** @param {Table} table @param {number} row */
  keepsRow(table, row) {
    const rows = this.behind(table, row);
    return !rows.length || rows.some((other) => this.kept[other]);
  }
}

/** @param {any} value */
const isMissing = (value) => value === undefined || value === null || value === "" || Number.isNaN(value);

/** @type {Runs} */
let runs;

/**
 * Return a value of a dimension as people write it.
 * @param {string} format
 * @param {string} value
 */
const dimensionText = (format, value) => (format ? FORMATS[format](Number(value)) : value);

/**
 * Return a plot without the rows that the filters drop; its categories and panels move up.
 * @param {any} plot
 */
function filteredPlot(plot) {
  if (!runs?.isFiltered || plot.isLive) return plot;
  /** @type {Map<Table, Table>} */
  const tables = new Map();
  const panels = plot.panels.map((/** @type {any} */ panel) => {
    const marks = panel.marks.map((/** @type {any} */ mark) => {
      if (!mark.table.size) return mark;
      if (!tables.has(mark.table)) tables.set(mark.table, keptRows(mark.table));
      return { ...mark, table: tables.get(mark.table) };
    });
    return withoutEmptyCategories({ ...panel, marks }, panel);
  });
  const isOfAll = !plot.panels.some((/** @type {any} */ panel) => panel.marks.some((/** @type {any} */ mark) => rowsOfRuns(mark.table)));
  return { ...withoutEmptyPanels(plot, panels), isOfAll };
}

/** @param {Table} table @returns {Table} */
function keptRows(table) {
  const length = table.values().next().value?.length ?? 0;
  const kept = Array.from({ length }, (_, row) => row).filter((row) => runs.keepsRow(table, row));
  if (kept.length === length) return table;
  return new Map([...table].map(([name, column]) => [name, kept.map((row) => column[row])]));
}

/** @param {any} mark @param {"x" | "y"} way @returns {string[]} columns with places along an axis */
const placesAlong = (mark, way) =>
  mark.type === "Texts" ? (inPanel(mark, way) ? [] : [mark[way]]) : columnsAlong(mark, way);

/** @param {any} panel filtered @param {any} whole the panel with all rows */
function withoutEmptyCategories(panel, whole) {
  for (const way of /** @type {const} */ (["x", "y"])) {
    const axis = panel[way];
    if (axis.scale !== "category" || axis.ticks.length || axis.limits) continue;
    const used = (/** @type {any} */ from) => new Set(from.marks.flatMap((/** @type {any} */ mark) =>
      placesAlong(mark, way).flatMap((column) => [...(mark.table.get(column) ?? [])].map(Math.round))));
    const [all, kept] = [used(whole), used(panel)];
    const places = axis.categories.map((/** @type {string} */ _, /** @type {number} */ n) => n)
      .filter((/** @type {number} */ n) => kept.has(n) || !all.has(n));
    if (places.length === axis.categories.length) continue;
    panel[way] = { ...axis, categories: places.map((/** @type {number} */ n) => axis.categories[n]) };
    panel.marks = panel.marks.map((/** @type {any} */ mark) => moved(mark, way, places)).filter(Boolean);
    if (way === "y") panel.share = places.length / axis.categories.length;
  }
  return panel;
}

/**
 * Return a mark with its places along a category axis moved up; null for a line that has none left.
 * @param {any} mark
 * @param {"x" | "y"} way
 * @param {number[]} places those that are kept
 */
function moved(mark, way, places) {
  if (mark.type === "ReferenceLine") {
    if (mark.axis === way || !mark.extent) return mark;
    const [from, to] = mark.extent;
    const own = places.map((place, n) => (place >= from && place <= to ? n : -1)).filter((n) => n >= 0);
    return own.length ? { ...mark, extent: [own[0] - 0.45, own[own.length - 1] + 0.45] } : null;
  }
  const columns = placesAlong(mark, way);
  if (!mark.table.size || !columns.length) return mark;
  const table = new Map(mark.table);
  for (const column of new Set(columns)) {
    table.set(column, [...table.get(column)].map((value) => places.indexOf(Math.round(value)) + value - Math.round(value)));
  }
  return { ...mark, table };
}

/** @param {any} plot @param {any[]} panels */
function withoutEmptyPanels(plot, panels) {
  const count = (/** @type {any} */ panel) => panel.marks.reduce((/** @type {number} */ sum, /** @type {any} */ mark) => sum + rowsOfRuns(mark.table), 0);
  const left = panels.filter((panel, n) => count(panel) || !count(plot.panels[n]));
  const rows = [...new Set(left.map((panel) => panel.row))].sort((a, b) => a - b);
  const heights = rows.map((row) => {
    const share = Math.max(...left.filter((panel) => panel.row === row).map((panel) => panel.share ?? 1));
    return share < 1 ? Math.max(0.6, plot.heights[row] * share) : plot.heights[row];
  });
  const used = new Set(left.flatMap((panel) => panel.marks.flatMap(keysOf)));
  const series = plot.series.filter((/** @type {any} */ own) => used.has(own.key));
  return { ...plot, series, panels: left.map((panel) => ({ ...panel, row: rows.indexOf(panel.row) })), heights };
}

/** @param {Table} table @returns {number} how many of its rows are about runs */
function rowsOfRuns(table) {
  const length = table.values().next().value?.length ?? 0;
  return Array.from({ length }, (_, row) => row).filter((row) => runs.behind(table, row).length).length;
}

/** @param {any} mark @returns {string[]} keys of the series that it shows */
const keysOf = (mark) =>
  [mark.by, mark.marker_of].filter(Boolean).flatMap((column) => [...(mark.table.get(column) ?? [])].map(String)).concat(mark.series ?? []);
