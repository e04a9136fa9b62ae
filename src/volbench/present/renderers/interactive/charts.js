"use strict";
// Charts: drawn when they come into view, worked by mouse and keyboard.

const PX_PER_IN = 96;
const NARROW_PX = 640;
const NAMES_PX = 260;
const LABELS_PX = 64;
const LETTER_PX = 6;

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {(Node | string)[]} children
 * @returns {any}
 */
function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** @type {Promise<void> | undefined} */
let library;
function loadLibrary() {
  library ??= payload("library").then((text) => {
    document.head.append(made("script", { textContent: text }));
    Bokeh.set_log_level("error");
  });
  return library;
}

/** A plot with its panels on the page. */
class Chart {
  /** @param {HTMLElement} place @param {any} plot */
  constructor(place, plot) {
    this.place = place;
    this.plot = plot;
    this.looks = new Looks(plot);
    this.isNarrow = place.clientWidth < NARROW_PX;
    /** @type {Set<string>} */
    this.hidden = new Set();
    /** @type {Map<number, {drawing: Drawing, view: any, whole: any}>} */
    this.drawn = new Map();
    this.cells = plot.panels.map((/** @type {any} */ panel, /** @type {number} */ n) => this.#cell(panel, n));
    const grid = made("div", { className: "panels" }, ...this.cells);
    grid.style.setProperty("--columns", plot.widths.map((/** @type {number} */ width) => `minmax(0, ${width}fr)`).join(" "));
    place.replaceChildren(toolsOf(this), grid);
    place.style.minHeight = "";
    this.cells.forEach((/** @type {HTMLElement} */ cell) => nearby.observe(cell));
  }

  /** @param {any} panel @param {number} n */
  #cell(panel, n) {
    const cell = made("div", { className: "panel" });
    cell.dataset.panel = String(n);
    cell.style.gridRow = String(panel.row + 1);
    cell.style.gridColumn = `${panel.column + 1} / span ${panel.columns}`;
    const neighbours = this.plot.panels.filter((/** @type {any} */ other) => other.row === panel.row);
    for (const part of ["heading", "title"]) {
      if (neighbours.some((/** @type {any} */ other) => other[part])) {
        const isEmpty = panel[part] ? "" : " empty";
        cell.append(made("p", { className: `panel-${part}${isEmpty}` }, panel[part] || "\u00a0"));
      }
    }
    const canvas = made("div", { className: "canvas" });
    canvas.style.minHeight = `${heightOf(this.plot, panel) + LABELS_PX}px`;
    cell.append(canvas);
    cell.draw = () => this.draw(n);
    return cell;
  }

  /** @param {number} n of the panel */
  async draw(n) {
    if (this.drawn.has(n)) return;
    const panel = this.plot.panels[n];
    const canvas = this.cells[n].querySelector(".canvas");
    const table = panel.marks.find((/** @type {any} */ mark) => mark.type === "Table");
    if (table) {
      canvas.replaceChildren(tableOf(table, this.looks));
    } else {
      const drawing = drawPanel(this, panel, canvas.clientWidth);
      const { x_range: x, y_range: y } = drawing.figure;
      const whole = [x, y].map((range) => ({ start: range.start, end: range.end }));
      this.drawn.set(n, { drawing, view: null, whole });
      this.#share(n);
      const held = new (Bokeh.require("document/document").Document)();
      held.add_root(drawing.figure);
      canvas.style.minHeight = "";
      const views = await Bokeh.embed.add_document_standalone(held, canvas);
      const drawn = this.drawn.get(n);
      if (drawn) drawn.view = [...views][0];
      this.#align(panel.column);
    }
    this.cells[n].dataset.drawn = "";
    if (this.cells.every((/** @type {HTMLElement} */ cell) => cell.dataset.drawn === "")) {
      this.place.dataset.drawn = "";
    }
  }

  /**
   * Begin panels that stand above each other on one line.
   * @param {number} column
   */
  #align(column) {
    if (this.isNarrow) return;
    const own = [...this.drawn.values()].filter(({ drawing, view }) => view && drawing.panel.column === column);
    const lefts = own.map(({ view }) => view.frame.bbox.left);
    const left = Math.max(...lefts);
    own.forEach(({ drawing }, n) => {
      if (left - lefts[n] > 1) drawing.figure.min_border_left = left;
    });
  }

  /**
   * Zoom panels with the same axis together.
   * @param {number} n
   */
  #share(n) {
    for (const way of /** @type {const} */ (["x", "y"])) {
      if (!this.plot[`shared_${way}`]) continue;
      const range = this.drawn.get(n)?.drawing.figure[`${way}_range`];
      const other = [...this.drawn.entries()].find(([place]) => place !== n)?.[1].drawing.figure[`${way}_range`];
      if (other && range) range.setv({ start: other.start, end: other.end });
      range?.change.connect(() => {
        for (const { drawing } of this.drawn.values()) {
          const follower = drawing.figure[`${way}_range`];
          if (follower.start !== range.start || follower.end !== range.end) follower.setv({ start: range.start, end: range.end });
        }
      });
    }
  }

  /**
   * Show or hide what has one of these keys.
   * @param {string[]} keys
   * @param {boolean} isShown
   */
  toggle(keys, isShown) {
    for (const key of keys) this.hidden[isShown ? "delete" : "add"](key);
    for (const { drawing } of this.drawn.values()) {
      for (const { key, renderer } of [...drawing.renderers, ...drawing.spans]) if (keys.includes(key)) renderer.visible = isShown;
    }
  }

  /**
   * Change the ends of all panels' x axes; a logarithmic one is cut in shares of its decades.
   * @param {(start: number, end: number) => number[]} change
   */
  zoom(change) {
    const seen = new Set();
    for (const { drawing } of this.drawn.values()) {
      const range = drawing.figure.x_range;
      if (this.plot.shared_x && seen.size) break;
      seen.add(range);
      const [to, from] = isLog(drawing.panel.x) ? [Math.log, Math.exp] : [Number, Number];
      const [start, end] = change(to(range.start), to(range.end)).map(from);
      range.setv({ start, end });
    }
  }

  reset() {
    for (const { drawing, whole } of this.drawn.values()) {
      drawing.figure.x_range.setv(whole[0]);
      drawing.figure.y_range.setv(whole[1]);
    }
  }
}

/** @param {any} plot @param {any} panel */
const heightOf = (plot, panel) => Math.max(40, plot.heights[panel.row] * PX_PER_IN);

/**
 * @param {Chart} chart
 * @param {any} panel
 * @param {number} widthPx
 * @returns {Drawing}
 */
function drawPanel(chart, panel, widthPx) {
  const { plot, looks } = chart;
  const height = heightOf(plot, panel);
  const ends = { x: endsOf(panel.x, valuesAlong(panel, "x")), y: endsOf(panel.y, valuesAlong(panel, "y")) };
  ends.x = withTexts(panel, ends.x, widthPx);
  const ranges = { x: rangeOf(panel.x, ends.x), y: rangeOf(panel.y, ends.y) };
  const share = () => model("Range1d", { start: 0, end: 1 });
  const figure = model("Plot", {
    x_range: ranges.x,
    y_range: ranges.y,
    x_scale: scaleOf(panel.x),
    y_scale: scaleOf(panel.y),
    extra_x_ranges: { share: share() },
    extra_y_ranges: { share: share() },
    extra_x_scales: { share: model("LinearScale") },
    extra_y_scales: { share: model("LinearScale") },
    frame_height: height,
    sizing_mode: "stretch_width",
    toolbar_location: null,
    min_border_top: roomAbove(panel),
    min_border_right: 12,
    outline_line_color: null,
    border_fill_color: null,
    background_fill_color: null,
  });
  if (panel.background) looks.paint(figure, { background_fill_color: "quiet" });
  if (panel.background === "hatched") {
    const box = model("BoxAnnotation", { fill_color: null, line_color: null, hatch_pattern: "right_diagonal_line", hatch_scale: 9, hatch_weight: 1, level: "image" });
    looks.paint(box, { hatch_color: "hatch" });
    figure.add_layout(box);
  }
  /** @type {Drawing} */
  const drawing = { panel, figure, looks, ends, renderers: [], spans: [] };
  addAxes(chart, drawing, { x: widthPx, y: height });
  for (const mark of panel.marks) {
    mark.formats ??= formatsOf(panel, mark);
    DRAWERS[mark.type](drawing, mark);
  }
  for (const { key, renderer } of [...drawing.renderers, ...drawing.spans]) if (chart.hidden.has(key)) renderer.visible = false;
  addZoom(drawing);
  return drawing;
}

/** @param {Chart} chart @param {Drawing} drawing @param {{x: number, y: number}} size */
function addAxes({ plot, isNarrow }, { panel, figure, looks, ends }, size) {
  const isNamed = isNarrow || !plot.shared_y || panel.column === 0;
  for (const way of /** @type {const} */ (["x", "y"])) {
    const axis = panel[way];
    const ticker = tickerOf(axis, ends[way], Math.max(3, Math.floor(size[way] / (way === "x" ? 110 : 45))));
    const room = { way, letters: nameLetters(size.x), isNamed: way === "x" || isNamed, lengthPx: size[way] };
    figure.add_layout(axisModel(axis, ticker, looks, room), way === "x" ? "below" : "left");
    if (axis.scale === "category") continue;
    const grid = model("Grid", { dimension: way === "x" ? 0 : 1, ticker, level: "underlay" });
    looks.paint(grid, { grid_line_color: "pale" });
    figure.add_layout(grid);
  }
}

/** @param {number} widthPx of a panel @returns {number} most letters of a name at its left */
const nameLetters = (widthPx) => Math.max(8, Math.floor(Math.min(NAMES_PX, widthPx * 0.4) / LETTER_PX));

/**
 * Return the ends of an x axis with room for the texts at the right of bars: a phone has little.
 * @param {any} panel
 * @param {[number, number]} ends
 * @param {number} widthPx
 * @returns {[number, number]}
 */
function withTexts(panel, ends, widthPx) {
  if (panel.y.scale !== "category" || panel.x.inverted) return ends;
  const [to, from] = isLog(panel.x) ? [Math.log, Math.exp] : [Number, Number];
  const [start, end] = ends.map(to);
  const frameWidth = widthPx - (nameLetters(widthPx) + 2) * LETTER_PX;
  const marks = panel.marks.filter((/** @type {any} */ mark) => mark.type === "Texts" && mark.align === "left" && !inPanel(mark, "x"));
  const needed = marks.flatMap((/** @type {any} */ mark) => groupedRows(mark, "").flatMap(({ rows }) => numbersOf(mark, mark.x, rows).map((value, n) => {
    const textPx = mark.offset_pt[0] * PX_PER_PT + String(mark.table.get(mark.text)[rows[n]] ?? "").length * 1.2 * LETTER_PX;
    return start + (to(value) - start) / (1 - Math.min(0.6, textPx / frameWidth));
  })));
  return [ends[0], from(needed.filter(Number.isFinite).reduce((/** @type {number} */ a, /** @type {number} */ b) => Math.max(a, b), end))];
}

/**
 * Return everything that marks show along an axis, to find its ends.
 * @param {any} panel
 * @param {"x" | "y"} way
 * @returns {number[]}
 */
function valuesAlong(panel, way) {
  if (panel[way].limits) return [];
  return panel.marks.flatMap((/** @type {any} */ mark) => {
    if (mark.type === "ReferenceLine") return mark.axis === way && !mark.is_beyond ? [mark.value] : [];
    const columns = columnsAlong(mark, way);
    const rows = groupedRows(mark, "").flatMap((group) => group.rows);
    const values = columns.flatMap((column) => numbersOf(mark, column, rows));
    const isBar = mark.type === "Bars" && (mark.is_horizontal ? "x" : "y") === way;
    return isBar ? [...values, 0] : values;
  });
}

/**
 * @param {any} mark
 * @param {"x" | "y"} way
 * @returns {string[]}
 */
function columnsAlong(mark, way) {
  /** @type {Record<string, () => string[]>} */
  const columns = {
    Bars: () => ((mark.is_horizontal ? "x" : "y") === way ? [mark.value] : [mark.at, mark.at_end]),
    Areas: () => (way === "x" ? [mark.x] : [mark.low, mark.high]),
    Whiskers: () => (mark.along === way ? [mark.low, mark.high] : [mark.at]),
    Cells: () => [mark[way], mark[`${way}_end`]],
    Lines: () => [mark[way]],
    Points: () => [mark[way]],
  };
  return (columns[mark.type]?.() ?? []).filter(Boolean);
}

/**
 * Return how a mark's columns are written: as the axis that they are drawn along.
 * @param {any} panel
 * @param {any} mark
 */
function formatsOf(panel, mark) {
  const ways = /** @type {const} */ (["x", "y"]).filter((way) => panel[way].scale !== "category");
  return Object.fromEntries(ways.flatMap((way) => columnsAlong(mark, way).map((column) => [column, panel[way].format])));
}

/** @param {Drawing} drawing */
function addZoom({ panel, figure }) {
  const isAlong = panel.x.scale === "time" || panel.y.scale === "category";
  const zoom = model("BoxZoomTool", { dimensions: isAlong ? "width" : "both" });
  figure.add_tools(zoom);
  // A finger on a chart scrolls the page; the buttons zoom.
  figure.toolbar.active_drag = matchMedia("(pointer: coarse)").matches ? null : zoom;
}

/** @param {any} mark @param {Looks} looks */
function tableOf(mark, looks) {
  const cells = (/** @type {string[]} */ texts) => texts.map((text) => made("td", { className: "number" }, text));
  const heads = mark.heads.map((/** @type {string} */ text) => made("th", { scope: "col", className: "number" }, text));
  const hasNames = mark.names.length > 0;
  const rows = mark.rows.map((/** @type {string[]} */ texts, /** @type {number} */ n) => {
    const name = made("th", { scope: "row" }, mark.names[n] ?? "");
    if (mark.series.length) name.prepend(swatchOf(looks, mark.series[n], "Bars"));
    return made("tr", {}, ...(hasNames ? [name] : []), ...cells(texts));
  });
  const head = made("thead", {}, made("tr", {}, ...(hasNames ? [made("th", { scope: "col" }, mark.corner)] : []), ...heads));
  const table = made("table", { className: "beside" }, head, made("tbody", {}, ...rows));
  return made("div", { className: "scroll", tabIndex: 0 }, table);
}

/** @type {Chart[]} */
const charts = [];

/** @param {any} place of a chart */
async function openChart(place) {
  await loadLibrary();
  charts.push(new Chart(place, decodedPlot(JSON.parse(await payload(place.dataset.payload ?? "")))));
}

/** @type {WeakMap<Element, Promise<void>>} */
const begun = new WeakMap();

/**
 * Draw what is on an element, once.
 * @param {any} element a chart's place, or one of its panels
 */
function drawOnce(element) {
  let drawing = begun.get(element);
  if (!drawing) {
    const done = () => element.querySelector(":scope > .waiting")?.remove();
    drawing = (element.draw ? element.draw() : openChart(element)).then(done, (/** @type {unknown} */ error) => {
      element.dataset.failed = "";
      console.error(error);
    });
    begun.set(element, /** @type {Promise<void>} */ (drawing));
  }
  return drawing;
}

const nearby = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    nearby.unobserve(target);
    drawOnce(target);
  }
}, { rootMargin: "400px 0px" });

for (const place of document.querySelectorAll(".chart")) nearby.observe(place);

darkScheme.addEventListener("change", () => charts.forEach((chart) => chart.looks.repaint()));
