"use strict";
// Chart whose axes, colours and pooling the reader chooses, drawn from the runs that filters keep.

const MOST_BARS = 60;
const MOST_COLOURS = 7;
const MEASURES = /** @type {Record<string, [string, string, string]>} */ ({
  iops: ["IOPS", "count", "limit_iops"],
  bw_bytes_per_s: ["Bandwidth", "rate", "limit_bw_bytes_per_s"],
  lat_mean_s: ["Mean latency", "latency", ""],
  lat_p50_s: ["Median latency", "latency", ""],
  lat_p99_s: ["p99 latency", "latency", ""],
  lat_p999_s: ["p99.9 latency", "latency", ""],
  lat_max_s: ["Max latency", "latency", ""],
  cpu_usr: ["CPU time in user space", "percent", ""],
});
/** Columns against which a measure is drawn as a line. */
const NUMERIC = /** @type {Record<string, [string, string]>} */ ({
  iodepth: ["Queue depth of each job", "count"],
  block_bytes: ["Block size (1k = 1024 bytes)", "size"],
  numjobs: ["Jobs in parallel", "count"],
});
const POOLS = { repeats: "repeats (median)", all: "all that share axis and colour (median)", none: "nothing" };
/** What repeats of a job share. */
const REPEATED = ["campaign", "job", "group", "direction", "rw", "block_bytes", "iodepth", "numjobs", "host", "volume", "phase"];
const DIRECTION_ROLES = new Set(["read", "write", "trim", "sync", "mixed"]);

/** @typedef {{rows: number[], value: number, low: number, high: number, colour: string}} Pool */

/** @param {string} name @param {string} otherwise */
const choiceOf = (name, otherwise) => view.params.get(name) ?? otherwise;

function explorerChoice() {
  return {
    show: choiceOf("show", "iops"),
    against: choiceOf("against", "job"),
    colour: choiceOf("colour", "direction"),
    pool: choiceOf("pool", "repeats"),
  };
}

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** @param {string} name of a column @param {number} row */
function textOf(name, row) {
  const value = runs.value(name, row);
  if (isMissing(value)) return "n/a";
  const format = runs.dimensions.find(([own]) => own === name)?.[2] ?? DIMENSIONS.find(([own]) => own === name)?.[2] ?? "";
  return dimensionText(format, String(value));
}

/** @param {number[]} rows @param {string[]} columns @returns {Map<string, number[]>} */
function groupedBy(rows, columns) {
  const groups = new Map();
  for (const row of rows) {
    const key = columns.map((name) => String(runs.value(name, row))).join("\n");
    const own = groups.get(key);
    if (own) own.push(row);
    else groups.set(key, [row]);
  }
  return groups;
}

/** @param {{show: string, against: string, colour: string, pool: string}} choice @returns {Pool[]} */
function pooledRows({ show, against, colour, pool }) {
  const rows = runs.rows().filter((row) => runs.value("direction", row) !== "sync" && Number.isFinite(runs.value(show, row)));
  const keys = pool === "none" ? ["number", "direction", "group"] : pool === "all" ? [against, colour] : [...REPEATED, against, colour];
  const known = keys.filter((name) => runs.table.has(name) && name !== show);
  return [...groupedBy(rows, known).values()].map((own) => {
    const values = own.map((row) => runs.value(show, row));
    return {
      rows: own,
      value: median(values),
      low: values.reduce((a, b) => Math.min(a, b)),
      high: values.reduce((a, b) => Math.max(a, b)),
      colour: textOf(colour, own[0]),
    };
  });
}

/**
 * Return series by colour: directions have their own, other values those of the palette.
 * @param {Pool[]} pools
 * @param {string} colour
 */
function seriesOf(pools, colour) {
  const order = runs.valuesOf(colour).map((value) => dimensionText(runs.dimensions.find(([name]) => name === colour)?.[2] ?? "", value));
  const found = [...new Set(pools.map((own) => own.colour))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return found.map((label, n) => {
    const own = colour === "direction" && DIRECTION_ROLES.has(label) ? label : `palette-${n % MOST_COLOURS}`;
    return completed("Series", { key: label, label, colour: own, marker: ["circle", "square", "up", "diamond", "down"][n % 5] });
  });
}

/**
 * Return the columns of a mark's table: numbers of a pool, and what identifies it.
 * @param {Pool[]} pools
 * @param {string} show
 * @returns {Table}
 */
function tableOfPools(pools, show) {
  const identity = IDENTITIES.filter((name) => name !== "run" && name !== "repeat" && runs.table.has(name));
  const shared = (/** @type {Pool} */ pool, /** @type {string} */ name) => {
    const first = runs.value(name, pool.rows[0]);
    return pool.rows.every((row) => runs.value(name, row) === first) ? first : null;
  };
  return new Map(/** @type {[string, any[]][]} */ ([
    ...identity.map((name) => [name, pools.map((own) => shared(own, name))]),
    [show, pools.map((own) => own.value)],
    ["low", pools.map((own) => own.low)],
    ["high", pools.map((own) => own.high)],
    ["repeats", pools.map((own) => own.rows.length)],
    ["_runs", pools.map((own) => own.rows.join(" "))],
    ["_series", pools.map((own) => own.colour)],
    ["_row", pools.map((_, n) => n)],
  ]));
}

/** @param {any[]} panels @param {number[]} heights @param {any} rest */
function livePlot(panels, heights, rest) {
  const whole = panels.map((panel) => completed("Panel", panel));
  return { ...completed("Plot", { series: [], ...rest }), panels: whole, heights, widths: [1], isLive: true };
}

/** @param {string} type @param {Table} table @param {any} fields */
const liveMark = (type, table, fields) => ({ ...completed(type, fields), type, table });

/** @param {string} show @param {any} fields */
const axisOf = (show, fields = {}) => completed("Axis", { label: MEASURES[show][0], format: MEASURES[show][1], ...fields });

/** @param {Pool} pool @param {string} against @param {string[]} differing */
function barName(pool, against, differing) {
  const parts = [against, ...differing].map((name) => textOf(name, pool.rows[0]));
  return [...new Set(parts)].join(", ");
}

/**
 * Return horizontal bars, the largest if there are many.
 * @param {Pool[]} every
 * @param {{show: string, against: string, colour: string, pool: string}} choice
 */
function barPlot(every, { show, against, colour, pool }) {
  const least = every.length > MOST_BARS ? every.map((own) => own.value).sort((a, b) => b - a)[MOST_BARS - 1] : -Infinity;
  const pools = every.filter((own) => own.value >= least).slice(0, MOST_BARS);
  const candidates = pool === "all" ? [] : ["campaign", "job", "host", "volume", "phase", ...(pool === "none" ? ["repeat"] : [])];
  const count = (/** @type {string[]} */ names) => new Set(pools.map((own) => barName(own, against, names))).size;
  const differing = /** @type {string[]} */ ([]);
  for (const name of candidates) {
    if (count([...differing, name]) > count(differing)) differing.push(name);
  }
  const names = pools.map((own) => barName(own, against, differing));
  const table = tableOfPools(pools, show);
  const top = Math.max(...pools.map((own) => own.high), 0);
  table.set("_text", pools.map((own) => FORMATS[MEASURES[show][1]](own.value)));
  const ranged = new Map([...table].map(([name, column]) => [name, [...column].filter((_, n) => pools[n].rows.length > 1)]));
  const limits = limitsOf(pools, show).filter((limit) => limit <= 4 * top);
  const end = Math.max(top, ...limits) * 1.14 || 1;
  const marks = [
    liveMark("Bars", table, { by: "_series", value: show }),
    ...limits.map((value) => liveMark("ReferenceLine", new Map(), { value, axis: "x", name: `limit: ${FORMATS[MEASURES[show][1]](value)}` })),
    liveMark("Whiskers", ranged, { low: "low", high: "high" }),
    liveMark("Texts", table, { x: "high", y: "_row", offset_pt: [6, 0], is_boxed: true }),
  ];
  const rows = completed("Axis", { scale: "category", categories: names, inverted: true });
  const panel = { x: axisOf(show, { limits: [0, end] }), y: rows, marks, row: 0, column: 0 };
  const note = pools.length < every.length ? `The ${pools.length} largest of ${every.length.toLocaleString("en-US")} are shown; filters narrow them.` : "";
  return { plot: livePlot([panel], [Math.max(1, pools.length * 0.26 + 0.2)], { series: seriesOf(pools, colour) }), note };
}

/** @param {Pool[]} pools @param {string} show @returns {number[]} declared limits */
function limitsOf(pools, show) {
  const column = MEASURES[show][2];
  return [...new Set(pools.map((own) => runs.value(column, own.rows[0])))].filter((value) => value > 0);
}

/**
 * Return lines over an option, one for each setting that differs in nothing else.
 * @param {Pool[]} pools
 * @param {{show: string, against: string, colour: string, pool: string}} choice
 */
function linePlot(pools, { show, against, colour, pool }) {
  const known = pools.filter((own) => runs.value(against, own.rows[0]) > 0);
  const sorted = known.sort((a, b) => runs.value(against, a.rows[0]) - runs.value(against, b.rows[0]));
  const table = tableOfPools(sorted, show);
  const fixed = pool === "all" ? [] : REPEATED.filter((name) => !["job", "group", against].includes(name));
  const line = (/** @type {Pool} */ own) => [own.colour, ...fixed.map((name) => runs.value(name, own.rows[0]))].join("\n");
  table.set("_x", sorted.map((own) => runs.value(against, own.rows[0])));
  table.set("_line", sorted.map(line));
  const [label, format] = NUMERIC[against];
  const x = completed("Axis", { label, format, scale: "log2" });
  const isLatency = MEASURES[show][1] === "latency";
  const top = Math.max(...sorted.map((own) => own.high), 0);
  const y = isLatency ? axisOf(show, { scale: "log" }) : axisOf(show, { limits: [0, top * 1.08 || 1] });
  const marks = [
    liveMark("Lines", table, { by: "_series", y: show, group: "_line", width: 1.6 }),
    liveMark("Points", table, { by: "_series", y: show }),
  ];
  const panel = { x, y, marks, row: 0, column: 0 };
  return { plot: livePlot([panel], [3.6], { series: seriesOf(sorted, colour) }), note: "" };
}

/**
 * Return points over IOPS.
 * @param {Pool[]} pools
 * @param {{show: string, against: string, colour: string, pool: string}} choice
 */
function pointPlot(pools, { show, against, colour }) {
  const table = tableOfPools(pools, show);
  table.set(against, pools.map((own) => median(own.rows.map((row) => runs.value(against, row)))));
  const scale = (/** @type {string} */ name) => axisOf(name, { scale: "log" });
  const marks = [liveMark("Points", table, { by: "_series", x: against, y: show, size: 7 })];
  const panel = { x: scale(against), y: scale(show), marks, row: 0, column: 0 };
  return { plot: livePlot([panel], [3.8], { series: seriesOf(pools, colour) }), note: "" };
}

function explorerPlot() {
  const choice = explorerChoice();
  const pools = pooledRows(choice);
  if (!pools.length) return { plot: livePlot([], [], {}), note: "" };
  if (NUMERIC[choice.against]) return linePlot(pools, choice);
  return choice.against in MEASURES ? pointPlot(pools, choice) : barPlot(pools, choice);
}

/** @param {string} name @param {string} title @param {[string, string][]} options */
function explorerSelect(name, title, options) {
  const select = made("select", {}, ...options.map(([value, text]) => made("option", { value }, text)));
  select.addEventListener("change", () => changeView({ [name]: select.value }));
  viewers.push(() => {
    select.value = /** @type {Record<string, string>} */ (explorerChoice())[name];
  });
  return made("label", {}, `${title} `, select);
}

function startExplorer() {
  const place = /** @type {any} */ (document.getElementById("explorer"));
  if (!place) return;
  const isKnown = (/** @type {string} */ name) => runs.column(name).some((/** @type {any} */ value) => Number.isFinite(value));
  const measures = Object.entries(MEASURES).filter(([name]) => isKnown(name)).map(([name, [title]]) => /** @type {[string, string]} */ ([name, title]));
  if (!measures.length) return;
  const dimensions = runs.dimensions.map(([name, title]) => /** @type {[string, string]} */ ([name, title]));
  const base = /** @type {[string, string][]} */ ([["job", "Job"], ["direction", "Direction"]]);
  const unique = (/** @type {[string, string][]} */ pairs) => [...new Map(pairs)];
  const chart = place.querySelector(".live");
  const note = place.querySelector(".note");
  place.querySelector(".choices").append(
    explorerSelect("show", "Show", measures),
    explorerSelect("against", "against", unique([base[0], ...dimensions, ...measures.slice(0, 2)])),
    explorerSelect("colour", "Colour", unique([base[1], ...dimensions])),
    explorerSelect("pool", "Group", Object.entries(POOLS)),
  );
  chart.describe = () => {
    const { plot, note: text } = explorerPlot();
    note.textContent = text;
    return plot;
  };
  chart.classList.add("chart");
  place.hidden = false;
  nearby.observe(chart);
  let before = "";
  viewers.push(() => {
    const key = JSON.stringify([explorerChoice(), filterKey()]);
    if (key !== before && before) redrawChart(chart);
    before = key;
  });
}
