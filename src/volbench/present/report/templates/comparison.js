"use strict";
// Two runs, or two groups of runs, beside each other: each workload that both have.

/** What must be equal for two results to be of the same workload. */
const WORKLOAD = ["rw", "direction", "block_bytes", "iodepth", "numjobs", "direct"];
const COMPARED = /** @type {[string, string, string][]} */ ([
  ["iops", "IOPS", "count"],
  ["bw_bytes_per_s", "Bandwidth", "rate"],
  ["lat_p99_s", "p99", "latency"],
]);

/**
 * Return the rows of a side: `run=KEY`, or filters as in the address.
 * @param {string} query
 * @returns {number[]}
 */
function rowsOfSide(query) {
  const params = new URLSearchParams(query);
  const keys = params.getAll("run");
  if (keys.length) return keys.flatMap((key) => rowsOfRun(numberOf(key)));
  const lets = runs.matcher(params);
  return Array.from({ length: runs.length }, (_, row) => row).filter((row) => !lets || lets(row));
}

/** @param {string} query @returns {string} what people call a side */
function nameOfSide(query) {
  const params = new URLSearchParams(query);
  const keys = params.getAll("run");
  if (keys.length) return keys.map((key) => runs.value("run", rowsOfRun(numberOf(key))[0])).join(", ");
  const named = runs.dimensions.map(([name, title, format]) => {
    const values = params.getAll(name).map((value) => dimensionText(format, value));
    return values.length ? `${title} ${values.join(" or ")}` : "";
  });
  return [...named.filter(Boolean), ...(params.has("affected") ? ["with warnings only"] : [])].join(", ") || "all runs";
}

/** @returns {string} the filters of the view, as a side */
function filterQuery() {
  const own = new URLSearchParams();
  for (const name of ["affected", ...runs.dimensions.map(([dimension]) => dimension)]) {
    for (const value of view.params.getAll(name)) own.append(name, value);
  }
  return String(own) || "all=1";
}

/** @param {number} row @param {string[]} differing options that the sides differ in: not named */
function workloadName(row, differing) {
  const parts = [
    ["rw", String(runs.value("rw", row))],
    ["block_bytes", textOf("block_bytes", row)],
    ["iodepth", `queue depth ${textOf("iodepth", row)}`],
    ["numjobs", runs.value("numjobs", row) > 1 ? `numjobs ${textOf("numjobs", row)}` : ""],
    ["direct", runs.value("direct", row) === 0 ? "buffered" : ""],
    ["direction", String(runs.value("direction", row))],
  ];
  return parts.filter(([name, text]) => text && !differing.includes(name)).map(([, text]) => text).join(", ");
}

/** @param {string} name of an option @param {number[][]} sides of one value each */
function differenceText(name, sides) {
  const title = DIMENSIONS.find(([own]) => own === name)?.[1].toLowerCase() ?? columnTitle(name);
  return `${title} (${sides.map((rows) => textOf(name, rows[0])).join(" and ")})`;
}

/** @param {number[]} rows @param {string} name @returns {number} median of the known values */
function medianOf(rows, name) {
  const known = rows.map((row) => runs.value(name, row)).filter(Number.isFinite);
  return known.length ? median(known) : NaN;
}

/** @param {number} first @param {number} second @returns {string} */
const ratioText = (first, second) => (first > 0 && Number.isFinite(second) ? `${(second / first).toFixed(2)} x` : "n/a");

/**
 * Return the options that each side has one value of, but not the same.
 * @param {number[]} first
 * @param {number[]} second
 */
function differences(first, second) {
  return WORKLOAD.filter((name) => {
    const [a, b] = [first, second].map((rows) => new Set(rows.map((row) => String(runs.value(name, row)))));
    return a.size === 1 && b.size === 1 && [...a][0] !== [...b][0];
  });
}

/** @param {number} row @returns {boolean} */
const isInvalid = (row) => runs.value("severity", row) === "invalid";

/** @param {number[][]} sides @returns {Node[]} */
function invalidText(sides) {
  const counts = sides.map((rows) => rows.filter(isInvalid).length);
  if (!counts.some(Boolean)) return [];
  return [made("p", {}, made("span", { className: "badge invalid" }, "invalid"), ` ${counts[0]} of ${sides[0].length} results of the baseline and ${counts[1]} of ${sides[1].length} of the other side are invalid and left out.`)];
}

/**
 * Return the comparison of two sides: the geometric mean of the ratios, and a row for each workload.
 * @param {string} base
 * @param {string} other
 */
function comparisonContent(base, other) {
  const every = [base, other].map((query) => rowsOfSide(query).filter((row) => runs.value("direction", row) !== "sync"));
  const sides = every.map((rows) => rows.filter((row) => !isInvalid(row)));
  const differing = differences(sides[0], sides[1]);
  const [first, second] = sides.map((rows) => groupedBy(rows, WORKLOAD.filter((name) => !differing.includes(name))));
  const shared = [...first.keys()].filter((key) => second.has(key));
  const pairs = shared.map((key) => [first.get(key) ?? [], second.get(key) ?? []]);
  const lines = pairs.map(([a, b]) => [
    `${workloadName(a[0], differing)} (${a.length} and ${b.length})`,
    ...COMPARED.flatMap(([name, , format]) => {
      const [x, y] = [medianOf(a, name), medianOf(b, name)];
      const text = (/** @type {number} */ value) => (Number.isFinite(value) ? FORMATS[format](value) : "n/a");
      return [text(x), text(y), ratioText(x, y)];
    }),
  ]);
  const ratios = pairs.map(([a, b]) => medianOf(b, "iops") / medianOf(a, "iops")).filter((ratio) => ratio > 0 && Number.isFinite(ratio));
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const heads = COMPARED.flatMap(([, title]) => [`${title} baseline`, "other", "ratio"]);
  const rest = first.size + second.size - 2 * shared.length;
  return [
    made("p", {}, made("strong", {}, "Baseline: "), nameOfSide(base), made("br"), made("strong", {}, "Compared with it: "), nameOfSide(other)),
    ...(differing.length ? [made("p", {}, `They differ in ${differing.map((name) => differenceText(name, sides)).join(", ")}; everything else is matched.`)] : []),
    made("p", { className: "verdict" }, ratios.length ? `${mean.toFixed(2)} times the IOPS of the baseline${ratios.length > 1 ? ` (geometric mean of ${ratios.length} workloads)` : ""}.` : "No workload has a valid result on both sides."),
    ...invalidText(every),
    ...(lines.length ? [plainTable("Medians of each workload that both have; in brackets the results of the baseline and of the other side", ["Workload", ...heads], lines)] : []),
    made("p", { className: "soft" }, `${rest ? `${rest} workload${rest === 1 ? " is" : "s are"} in only one of them. ` : ""}These are ratios of medians without an interval: volbench compare judges whether a difference is significant.`),
  ];
}

/**
 * Return charts with the series of two runs over each other.
 * @param {number} first
 * @param {number} second
 */
async function overlaidCharts(first, second) {
  const sides = await Promise.all([first, second].map(detailsOf));
  const sources = (/** @type {string} */ part) => sides.flatMap((side, n) => side[part].map((/** @type {any} */ source) => ({
    source,
    label: `${["baseline", "compared"][n]}, ${source.direction}`,
    role: `palette-${n}:${source.direction}`,
    dash: source.direction === "write" ? "dashed" : "solid",
  })));
  const [series, percentiles] = [sources("series"), sources("percentiles")];
  return [
    ...(series.length ? [panelChart("Both over time", timePlot(series, OVER_TIME))] : []),
    ...(percentiles.length ? [panelChart("Latency percentiles of both", percentilePlot(percentiles))] : []),
  ];
}

/** @returns {string} the run that is the baseline, if one run is */
const baseRun = () => new URLSearchParams(view.params.get("base") ?? "").get("run") ?? "";

/** @param {string} key of the run that is open */
async function againstBase(key) {
  const base = view.params.get("base");
  if (!base) return [];
  if (baseRun() === key) return [made("p", { className: "soft" }, "This run is the baseline. Open another run, by its bar or row, to compare it with this one. "), forgetButton()];
  const charts = baseRun() ? await overlaidCharts(numberOf(baseRun()), numberOf(key)) : [];
  return [made("h3", {}, "Compared with the baseline ", forgetButton()), ...comparisonContent(base, String(new URLSearchParams({ run: key }))), ...charts];
}

/** @returns {HTMLElement} a button that ends the comparison */
function forgetButton() {
  const button = made("button", { type: "button" }, "Clear baseline");
  button.addEventListener("click", () => changeView({ base: "", compare: "" }));
  return button;
}

/** @param {HTMLElement} bar of the filters */
function addComparison(bar) {
  const keep = made("button", { type: "button", title: "what the filters show is the side to compare with" }, "Use as baseline");
  keep.addEventListener("click", () => changeView({ base: filterQuery(), compare: "" }));
  const show = made("button", { type: "button" }, "Compare with baseline");
  show.addEventListener("click", () => changeView({ compare: "1", run: "" }, true));
  const forget = forgetButton();
  bar.append(keep, show, forget);
  viewers.push(() => {
    const base = view.params.get("base");
    show.hidden = forget.hidden = !base;
    show.title = base ? `Baseline: ${nameOfSide(base)}` : "";
  });
}
