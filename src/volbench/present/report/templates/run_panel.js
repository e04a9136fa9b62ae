"use strict";
// One run at the side of the page: its numbers, findings, series, device, percentiles, job file and facts.

const BATCH = 32;
/** Share of a run from which on a finding is about all of it, and not shaded. */
const WHOLE_RUN = 0.9;
const FIGURES = /** @type {[string, string, string][]} */ ([
  ["iops", "IOPS", "count"],
  ["bw_bytes_per_s", "Bandwidth", "rate"],
  ["lat_mean_s", "Mean", "latency"],
  ["lat_p50_s", "Median", "latency"],
  ["lat_p99_s", "p99", "latency"],
  ["lat_p999_s", "p99.9", "latency"],
  ["lat_max_s", "Max", "latency"],
]);
/** Panels over time: columns with their series, title and format. */
const OVER_TIME = /** @type {[[string, string][], string, string][]} */ ([
  [[["iops", ""]], "IOPS", "count"],
  [[["bw_bytes_per_s", ""]], "Bandwidth", "rate"],
  [[["lat_mean_s", ""], ["lat_max_s", "max"]], "Latency", "latency"],
]);
const OF_DEVICE = /** @type {[[string, string][], string, string][]} */ ([
  [[["read_iops", "read"], ["write_iops", "write"]], "IOPS of the device", "count"],
  [[["read_bw_bytes_per_s", "read"], ["write_bw_bytes_per_s", "write"]], "Bandwidth of the device", "rate"],
  [[["read_lat_s", "read"], ["write_lat_s", "write"]], "Latency of the device", "latency"],
  [[["queue_depth", "ink"]], "Requests in queue and device", "number"],
  [[["active_percent", "ink"]], "Time with a request in flight", "percent"],
]);

/** @type {Map<number, Promise<any[]>>} */
const batches = new Map();

/** @param {number} number of a run */
async function detailsOf(number) {
  const batch = Math.floor(number / BATCH);
  if (!batches.has(batch)) batches.set(batch, payload(`details-${batch}`).then(JSON.parse));
  return (await /** @type {Promise<any[]>} */ (batches.get(batch)))[number % BATCH];
}

/** @param {number} number @returns {number[]} rows of a run */
const rowsOfRun = (number) => Array.from({ length: runs.length }, (_, row) => row).filter((row) => runs.value("number", row) === number);

/** @param {string} key @returns {number} of the run; -1 if there is none */
const numberOf = (key) => runs.value("number", runs.column("key").indexOf(key)) ?? -1;

/** @param {number} number */
const keyOf = (number) => runs.value("key", rowsOfRun(number)[0]);

/**
 * Return a line for each column of a series that has values.
 * @param {{source: any, label: string, role: string, dash: string}[]} sources
 * @param {[[string, string][], string, string]} panel
 * @param {any} place of the panel in the grid
 */
function timePanel(sources, [columns, title, format], place) {
  const marks = [];
  let top = 0;
  for (const { source, label, role } of sources) {
    for (const [column, part] of columns) {
      if (!source[column]) continue;
      const values = source[column].map((/** @type {number | null} */ value) => value ?? NaN);
      top = values.reduce((/** @type {number} */ a, /** @type {number} */ b) => (b > a ? b : a), top);
      const table = new Map([["t_s", source.t_s], [column, values]]);
      const series = role ? `${role}${part === "max" ? "/max" : ""}` : part;
      marks.push(liveMark("Lines", table, { series, x: "t_s", y: column, width: part === "max" ? 0.8 : 1.2, label }));
    }
  }
  const end = Math.max(...sources.map(({ source }) => source.t_s[source.t_s.length - 1] ?? 1));
  const x = completed("Axis", { label: "Time since the run's I/O began", format: "duration", scale: "time", limits: [0, end || 1] });
  const y = completed("Axis", { format, limits: [0, top * 1.08 || 1] });
  return marks.length ? { x, y, marks, title, ...place } : null;
}

/**
 * @param {{source: any, label: string, role: string, dash: string}[]} sources
 * @param {[[string, string][], string, string][]} wanted
 * @param {any[]} spans
 */
function timePlot(sources, wanted, spans = []) {
  const panels = wanted.map((panel) => timePanel(sources, panel, { column: 0 })).filter((panel) => panel !== null);
  panels.forEach((panel, row) => Object.assign(panel, { row, marks: [...spans, ...panel.marks] }));
  for (const panel of panels.slice(0, -1)) panel.x = { ...panel.x, label: "" };
  const series = sources.filter(({ role }) => role).flatMap(({ label, role, dash }) => [
    completed("Series", { key: role, label, colour: role.split(":")[0], dash }),
    completed("Series", { key: `${role}/max`, label, colour: role.split(":")[0], dash: "dotted" }),
  ]);
  const fixed = ["read", "write"].filter((key) => panels.some((panel) => panel.marks.some((/** @type {any} */ mark) => mark.series === key)) && !series.some((own) => own.key === key));
  const all = [...series, ...fixed.map((key) => completed("Series", { key, label: key, colour: key }))];
  return livePlot(panels, panels.map(() => 1.25), { series: all, shared_x: true });
}

/** @param {{source: any, label: string, role: string, dash: string}[]} sources */
function percentilePlot(sources) {
  const marks = sources.map(({ source, role, label }) => {
    const kept = source.percentile.map((/** @type {number} */ _, /** @type {number} */ n) => n)
      .filter((/** @type {number} */ n) => source.percentile[n] < 100 && source.value_s[n] > 0);
    const table = new Map([
      ["percentile", kept.map((/** @type {number} */ n) => source.percentile[n])],
      ["value_s", kept.map((/** @type {number} */ n) => source.value_s[n])],
      ["_x", kept.map((/** @type {number} */ n) => 1 / (1 - source.percentile[n] / 100))],
    ]);
    return liveMark("Lines", table, { series: role, y: "value_s", has_dots: true, label });
  });
  const x = completed("Axis", { label: "Percentile", format: "percentile", scale: "log" });
  const y = completed("Axis", { label: "Latency", format: "latency", scale: "log" });
  const series = sources.map(({ label, role, dash }) => completed("Series", { key: role, label, colour: role.split(":")[0], dash }));
  return livePlot([{ x, y, marks, row: 0, column: 0 }], [2.2], { series });
}

/** @param {string} title @param {any} plot */
function panelChart(title, plot) {
  const place = made("div", { className: "chart", describe: () => plot });
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", `${title}: interactive chart`);
  nearby.observe(place);
  return made("figure", {}, made("h3", {}, title), place);
}

/** @param {string} caption @param {string[]} heads @param {(string | Node)[][]} rows the first cell names the row */
function plainTable(caption, heads, rows) {
  const row = (/** @type {(string | Node)[]} */ cells, /** @type {string} */ tag) => made("tr", {}, ...cells.map((text, n) => {
    const cell = made((n && tag === "td") || text === "" ? "td" : "th", n ? { className: "number" } : {}, text);
    if (cell.tagName === "TH") cell.scope = tag === "th" ? "col" : "row";
    return cell;
  }));
  const head = heads.length ? [made("thead", {}, row(heads, "th"))] : [];
  const table = made("table", {}, made("caption", {}, caption), ...head, made("tbody", {}, ...rows.map((cells) => row(cells, "td"))));
  return made("div", { className: "scroll", tabIndex: 0 }, table);
}

/** @param {number} row @param {string} name @param {string} format */
function figureText(row, name, format) {
  const value = runs.value(name, row);
  return Number.isFinite(value) ? FORMATS[format](value) : "n/a";
}

/** @param {number[]} rows of a run @returns {string[]} shares of declared limits */
function limitShares(rows) {
  const pairs = /** @type {[string, string][]} */ ([["iops", "IOPS"], ["bw_bytes_per_s", "bandwidth"]]);
  return pairs.flatMap(([name, title]) => {
    const limit = runs.value(MEASURES[name][2], rows[0]);
    const sum = rows.reduce((total, row) => total + (runs.value(name, row) || 0), 0);
    return limit > 0 ? [`${FORMATS.percent(Math.round((100 * sum) / limit))} of the declared ${title}`] : [];
  });
}

/** @param {number[]} rows of a run */
function figuresOf(rows) {
  const lines = rows.map((row) => [runs.value("direction", row), ...FIGURES.map(([name, , format]) => figureText(row, name, format))]);
  const shares = limitShares(rows);
  return [
    plainTable("Results; latencies at the right", ["", ...FIGURES.map(([, title]) => title)], lines),
    ...(shares.length ? [made("p", {}, `${shares.join(", ")}.`)] : []),
  ];
}

/** @param {any[]} findings */
function findingsList(findings) {
  const items = findings.map((own) => made("li", {}, made("span", { className: `badge ${own.severity}` }, own.severity), " ",
    made("strong", {}, own.rule), `: ${own.from_s === undefined ? "" : `${FORMATS.duration(own.from_s)} to ${FORMATS.duration(own.to_s)}: `}${own.message}`));
  return items.length ? made("ul", { className: "findings-list" }, ...items) : made("p", { className: "soft" }, "No data-quality warnings.");
}

/** @param {any} facts */
function factsTable(facts) {
  const rows = Object.entries(facts).map(([name, value]) => {
    const format = SETTINGS.column_formats.find(([ending]) => name.endsWith(ending))?.[1];
    return [columnTitle(name), typeof value === "number" && format ? FORMATS[format === "latency" ? "duration" : format](value) : String(value)];
  });
  return plainTable("Facts", [], rows);
}

/** @param {any} details */
function chartsOfRun(details) {
  const end = Math.max(...details.series.map((/** @type {any} */ own) => own.t_s?.[own.t_s.length - 1] ?? 0), 0);
  const spans = details.findings.filter((/** @type {any} */ own) => own.from_s !== undefined && own.to_s - own.from_s < WHOLE_RUN * end)
    .map((/** @type {any} */ own) => liveMark("Span", new Map(), { low: own.from_s, high: own.to_s, axis: "x" }));
  const ways = (/** @type {any[]} */ sources) => sources.map((source) => ({ source, label: source.direction, role: source.direction, dash: "solid" }));
  const parts = [];
  if (details.series.length) parts.push(panelChart("Over time", timePlot(ways(details.series), OVER_TIME, spans)));
  if (details.percentiles.length) parts.push(panelChart("Latency percentiles", percentilePlot(ways(details.percentiles))));
  if (details.device.length) parts.push(panelChart("Device", timePlot([{ source: details.device[0], label: "", role: "", dash: "solid" }], OF_DEVICE)));
  return parts;
}

/** @param {number} number */
async function runContent(number) {
  const details = await detailsOf(number);
  const verdicts = details.verdicts.filter((/** @type {any} */ own) => own.explanation);
  return [
    ...figuresOf(rowsOfRun(number)),
    made("h3", {}, "Data quality"),
    findingsList(details.findings),
    ...verdicts.map((/** @type {any} */ own) => made("p", {}, made("strong", {}, `${own.direction}: `), own.explanation)),
    ...chartsOfRun(details),
    ...(details.job ? [made("h3", {}, "Job file"), made("pre", { tabIndex: 0 }, made("code", {}, details.job))] : []),
    factsTable(details.facts),
  ];
}

/** @param {number[]} numbers */
function groupContent(numbers) {
  const rows = numbers.flatMap(rowsOfRun);
  return [plainTable("Runs behind the mark", ["Run", "Direction", "IOPS", "Bandwidth", "p99"], rows.map((row) => [
    openButton(runs.value("number", row), runs.value("run", row)),
    runs.value("direction", row),
    ...[["iops", "count"], ["bw_bytes_per_s", "rate"], ["lat_p99_s", "latency"]].map(([name, format]) => figureText(row, name, format)),
  ]))];
}

/** @param {number} number of a run @param {string} text */
function openButton(number, text) {
  const button = made("button", { type: "button", className: "open-run", title: "open this run" }, text);
  button.addEventListener("click", (/** @type {Event} */ event) => {
    event.stopPropagation();
    openRuns([number]);
  });
  return button;
}

/** @param {number[]} numbers of runs; several are listed */
function openRuns(numbers) {
  if (numbers.length) changeView({ run: numbers.map(keyOf), compare: "" }, true);
}

function closePanel() {
  changeView({ run: "", compare: "" });
}

/** @param {number} step to the next or previous run that filters keep */
function stepRun(step) {
  const kept = [...(runs.numbers ?? [])].sort((a, b) => a - b);
  const [key] = view.params.getAll("run");
  if (!key || !kept.length) return;
  const place = kept.indexOf(numberOf(key));
  changeView({ run: keyOf(kept[(place + step + kept.length) % kept.length]) });
}

/** @type {HTMLElement | null} */
let openedFrom = null;

/** @param {number[]} numbers @returns {Promise<{title: string, subtitle: string, content: Node[]}>} */
async function contentOf(numbers) {
  if (!numbers.length) {
    return { title: "Comparison", subtitle: "", content: comparisonContent(view.params.get("base") ?? "", filterQuery()) };
  }
  if (numbers.length > 1) return { title: `${numbers.length} runs`, subtitle: "", content: groupContent(numbers) };
  const row = rowsOfRun(numbers[0])[0];
  const place = ["run", "campaign", "host", "volume"].map((name) => runs.value(name, row)).filter(Boolean).join(" \u00b7 ");
  const content = [...(await againstBase(keyOf(numbers[0]))), ...(await runContent(numbers[0]))];
  return { title: runs.value("job", row), subtitle: place, content };
}

/** @param {HTMLDialogElement} panel @param {number[]} numbers of runs; none for the comparison of groups */
async function fillPanel(panel, numbers) {
  const { title, subtitle, content } = await contentOf(numbers);
  const heading = made("h2", { tabIndex: -1, id: "run-heading" }, title);
  const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) => {
    const own = made("button", { type: "button", onclick: act }, text);
    own.setAttribute("aria-label", label);
    return own;
  };
  const side = () => changeView({ base: String(new URLSearchParams({ run: keyOf(numbers[0]) })) });
  const steps = numbers.length !== 1 ? [] : [
    button("Use as baseline", "Use as baseline: compare other runs with this one", side),
    button("\u2190", "Previous run", () => stepRun(-1)),
    button("\u2192", "Next run", () => stepRun(1)),
  ];
  const bar = made("div", { className: "panel-bar" }, heading, ...steps, button("\u00d7", "Close", closePanel));
  emptyPanel(panel);
  panel.append(bar, made("p", { className: "soft" }, subtitle), ...content);
  if (!panel.open) {
    openedFrom = /** @type {HTMLElement | null} */ (document.activeElement);
    panel.show();
  }
  panel.scrollTop = 0;
  heading.focus();
}

/** @param {HTMLDialogElement} panel */
function emptyPanel(panel) {
  for (const place of /** @type {NodeListOf<any>} */ (panel.querySelectorAll(".chart"))) dropChart(place);
  panel.replaceChildren();
}

clicks.open = (mark, row) => {
  if (runs) openRuns([...new Set(runs.behind(mark.table, row).map((own) => runs.value("number", own)))]);
};

function startPanel() {
  const panel = /** @type {HTMLDialogElement} */ (document.getElementById("run"));
  let before = "";
  viewers.push(() => {
    const numbers = view.params.getAll("run").map(numberOf).filter((number) => number >= 0);
    const isComparison = view.params.has("compare") && view.params.has("base") && !numbers.length;
    const key = `${numbers.join(" ")} ${view.params.get("base")} ${isComparison ? filterKey() : ""}`;
    if (key === before) return;
    before = key;
    if (numbers.length || isComparison) {
      fillPanel(panel, numbers);
      return;
    }
    panel.close();
    emptyPanel(panel);
    openedFrom?.focus();
    openedFrom = null;
  });
  KEYS["["] = () => stepRun(-1);
  KEYS["]"] = () => stepRun(1);
}
