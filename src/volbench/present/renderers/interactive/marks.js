"use strict";
// Marks of a plot description as glyphs of Bokeh.

const PX_PER_PT = 4 / 3;
const FEW_POINTS = 15;
const MANY_POINTS = 16;
const DARK_LUMA = 0.5;
const SMALL = { text_font_size: "11.5px" };
const NAME_PX = 72; // Room of a line's name beside that of another line near it

/**
 * One panel while it is drawn.
 * @typedef {{
 *   panel: any, figure: any, looks: Looks, ends: {x: [number, number], y: [number, number]},
 *   renderers: {key: string, mark: any, renderer: any}[], spans: {key: string, renderer: any}[],
 * }} Drawing
 */

/** @param {any} mark @param {"x" | "y"} way */
const inPanel = (mark, way) => mark[`${way}_in`] === "panel";
/** @param {number} sizePt */
const letters = (sizePt) => `${Math.max(11, Math.round(sizePt * 1.45))}px`;

/**
 * Add a glyph and return its renderer.
 * @param {Drawing} drawing
 * @param {any} mark
 * @param {string} key of the series
 * @param {string} type
 * @param {{columns: Record<string, ArrayLike<any>>, rows?: number[], look?: Record<string, any>, roles?: Record<string, string>, options?: Record<string, any>}} glyph
 *   columns by property, rows of the mark's table that they hold, other properties, and roles of colours
 */
function addGlyph(drawing, mark, key, type, { columns, rows = [], look = {}, roles = {}, options = {} }) {
  const own = rows.length ? { row: rows } : {};
  const source = model("ColumnDataSource", { data: { ...columns, ...own } });
  const fields = Object.fromEntries(Object.keys(columns).map((name) => [name, { field: name }]));
  const glyph = model(type, { ...fields, ...look });
  drawing.looks.paint(glyph, roles);
  const renderer = model("GlyphRenderer", { data_source: source, glyph, ...options });
  drawing.figure.renderers = [...drawing.figure.renderers, renderer];
  drawing.renderers.push({ key, mark, renderer });
  return renderer;
}

/**
 * Return numbers of a column where they are drawn along an axis.
 * @param {Drawing} drawing
 * @param {any} mark
 * @param {string} column
 * @param {"x" | "y"} way
 * @param {number[]} rows
 */
function places(drawing, mark, column, way, rows) {
  const axis = drawing.panel[way];
  return numbersOf(mark, column, rows).map((value) => placed(axis, value));
}

/** @param {string} key */
const filled = (key) => ({ fill_color: key, hatch_color: "paper", hatch_pattern: key });

/** @param {Drawing} drawing @param {any} mark */
function addBars(drawing, mark) {
  const [along, across] = mark.is_horizontal ? /** @type {const} */ (["x", "y"]) : /** @type {const} */ (["y", "x"]);
  const names = mark.is_horizontal ? ["left", "right", "bottom", "top"] : ["bottom", "top", "left", "right"];
  for (const { key, rows } of groupedRows(mark, "")) {
    const at = numbersOf(mark, mark.at, rows);
    const value = numbersOf(mark, mark.value, rows);
    const ends = mark.at_end ? numbersOf(mark, mark.at_end, rows) : at.map((place) => place + mark.thickness / 2);
    const starts = mark.at_end ? at : at.map((place) => place - mark.thickness / 2);
    const far = value.map((own) => placed(drawing.panel[along], own));
    const near = value.map(() => placed(drawing.panel[along], 0));
    const [a, b] = [starts, ends].map((own) => own.map((place) => placed(drawing.panel[across], place)));
    const columns = Object.fromEntries([near, far, a, b].map((own, n) => [names[n], own]));
    addHover(drawing, mark, addGlyph(drawing, mark, key, "Quad", { columns, rows, look: { line_color: null }, roles: filled(key) }));
  }
}

/** @param {Drawing} drawing @param {any} mark */
function addLines(drawing, mark) {
  for (const { key, rows } of groupedRows(mark, mark.group)) {
    const series = drawing.looks.of(key);
    const columns = { x: places(drawing, mark, mark.x, "x", rows), y: places(drawing, mark, mark.y, "y", rows) };
    const look = { line_width: mark.width * PX_PER_PT, line_alpha: mark.alpha, line_dash: DASHES[series.dash], line_join: "round" };
    const type = mark.step ? "Step" : "Line";
    const mode = mark.step ? { mode: mark.step === "post" ? "after" : "before" } : {};
    const line = addGlyph(drawing, mark, key, type, { columns, rows, look: { ...look, ...mode }, roles: { line_color: key } });
    addHover(drawing, mark, line);
    if (series.marker || (mark.has_dots && rows.length < FEW_POINTS)) {
      const every = rows.length > MANY_POINTS ? Math.floor(rows.length / 6) : 1;
      const kept = rows.map((_, n) => n).filter((n) => n % every === 0);
      const some = { x: kept.map((n) => columns.x[n]), y: kept.map((n) => columns.y[n]) };
      addMarkers(drawing, mark, key, { columns: some, rows: kept.map((n) => rows[n]), marker: series.marker || "circle", sizePt: series.marker ? 5 : 3 });
    }
  }
}

/**
 * @param {Drawing} drawing
 * @param {any} mark
 * @param {string} key
 * @param {{columns: Record<string, number[]>, rows: number[], marker: string, sizePt: number, isHollow?: boolean}} points
 */
function addMarkers(drawing, mark, key, { columns, rows, marker, sizePt, isHollow = false }) {
  const { shape, angle } = MARKERS[marker || "circle"];
  const isThin = isHollow || shape === "x" || shape === "dash";
  const size = sizePt * PX_PER_PT * (shape === "diamond" ? 1.5 : 1);
  return addGlyph(drawing, mark, key, "Scatter", {
    columns,
    rows,
    look: { marker: { value: shape }, angle, size, line_width: isThin ? 1.6 : 0.8, ...(isHollow ? { fill_alpha: 0 } : {}) },
    roles: { fill_color: key, line_color: isThin ? key : "paper" },
  });
}

/** @param {Drawing} drawing @param {any} mark */
function addPoints(drawing, mark) {
  for (const { key, rows } of groupedRows(mark, mark.marker_of)) {
    const columns = { x: places(drawing, mark, mark.x, "x", rows), y: places(drawing, mark, mark.y, "y", rows) };
    const shape = drawing.looks.of(mark.marker_of ? String(mark.table.get(mark.marker_of)[rows[0]]) : key);
    const points = { columns, rows, marker: shape.marker, sizePt: mark.size, isHollow: mark.is_hollow };
    addHover(drawing, mark, addMarkers(drawing, mark, key, points));
  }
}

/** @param {Drawing} drawing @param {any} mark */
function addAreas(drawing, mark) {
  const foot = isLog(drawing.panel.y) ? Math.min(...drawing.ends.y) : 0;
  const type = `VArea${mark.step ? "Step" : ""}`;
  const mode = mark.step ? { step_mode: mark.step === "post" ? "after" : "before" } : {};
  for (const { key, rows } of groupedRows(mark, mark.group)) {
    for (const stretch of withoutGaps(mark, rows)) {
      const at = places(drawing, mark, mark.x, "x", stretch);
      const [low, high] = [mark.low, mark.high].map((column) => places(drawing, mark, column, "y", stretch));
      const raised = isLog(drawing.panel.y) ? low.map((value) => (value > 0 ? value : foot)) : low;
      const columns = { x: at, y1: raised, y2: high };
      addGlyph(drawing, mark, key, type, { columns, rows: stretch, look: { fill_alpha: mark.alpha, ...mode }, roles: filled(key) });
      const ends = { x: at, y: high };
      const look = { size: 9, fill_alpha: 0, line_alpha: 0 };
      addHover(drawing, mark, addGlyph(drawing, mark, key, "Scatter", { columns: ends, rows: stretch, look }));
    }
  }
}

/**
 * Return the stretches of rows in which nothing is missing.
 * @param {any} mark
 * @param {number[]} rows
 */
function withoutGaps(mark, rows) {
  const columns = [mark.x, mark.low, mark.high].map((column) => numbersOf(mark, column, rows));
  /** @type {number[][]} */
  const stretches = [[]];
  rows.forEach((row, n) => {
    if (columns.some((values) => Number.isNaN(values[n]))) stretches.push([]);
    else stretches[stretches.length - 1].push(row);
  });
  return stretches.filter((stretch) => stretch.length);
}

/** @param {Drawing} drawing @param {any} mark */
function addWhiskers(drawing, mark) {
  const [along, across] = mark.along === "x" ? /** @type {const} */ (["x", "y"]) : /** @type {const} */ (["y", "x"]);
  for (const { key, rows: all } of groupedRows(mark, "")) {
    const rows = all.filter((row) => mark.table.get(mark.high)[row] > mark.table.get(mark.low)[row]);
    const at = places(drawing, mark, mark.at, across, rows);
    const [low, high] = [mark.low, mark.high].map((column) => places(drawing, mark, column, along, rows));
    const columns = { [`${along}0`]: low, [`${along}1`]: high, [`${across}0`]: at, [`${across}1`]: at };
    const look = { line_width: mark.width * PX_PER_PT };
    addGlyph(drawing, mark, key, "Segment", { columns, rows, look, roles: { line_color: key } });
    if (!mark.has_caps) continue;
    const caps = { [along]: [...low, ...high], [across]: [...at, ...at] };
    const angle = mark.along === "x" ? Math.PI / 2 : 0;
    addGlyph(drawing, mark, key, "Scatter", {
      columns: caps,
      rows: [...rows, ...rows],
      look: { marker: { value: "dash" }, angle, size: 8, line_width: mark.width * PX_PER_PT },
      roles: { line_color: key },
    });
  }
}

/** @param {Drawing} drawing @param {any} mark */
function addCells(drawing, mark) {
  const rows = groupedRows(mark, "").flatMap((group) => group.rows).filter((row) => !Number.isNaN(Number(mark.table.get(mark.value)[row] ?? NaN)));
  const value = numbersOf(mark, mark.value, rows);
  const [x, y] = [numbersOf(mark, mark.x, rows), numbersOf(mark, mark.y, rows)];
  const columns = {
    left: mark.x_end ? x : x.map((place) => place - 0.5),
    right: mark.x_end ? numbersOf(mark, mark.x_end, rows) : x.map((place) => place + 0.5),
    bottom: mark.y_end ? y : y.map((place) => place - 0.5),
    top: mark.y_end ? numbersOf(mark, mark.y_end, rows) : y.map((place) => place + 0.5),
    value,
  };
  const [low, high] = shadesOf(mark, value);
  const palette = rampOf(mark.ramp);
  const mapper = model(mark.scale === "log" ? "LogColorMapper" : "LinearColorMapper", { palette, low, high });
  const source = model("ColumnDataSource", { data: { ...columns, row: rows } });
  const edges = Object.fromEntries(["left", "right", "bottom", "top"].map((name) => [name, { field: name }]));
  const glyph = model("Quad", { ...edges, fill_color: { field: "value", transform: mapper }, line_color: null });
  const renderer = model("GlyphRenderer", { data_source: source, glyph });
  drawing.figure.renderers = [...drawing.figure.renderers, renderer];
  drawing.renderers.push({ key: mark.series, mark, renderer });
  addHover(drawing, mark, renderer);
  if (mark.text) addCellTexts(drawing, mark, rows, value.map((own) => isDark(palette, shareOf(mark, own, low, high))));
  if (mark.bar) addColourBar(drawing, mark, mapper);
}

/**
 * Return the values of the palest and the darkest colour.
 * @param {any} mark
 * @param {number[]} values
 */
function shadesOf(mark, values) {
  const known = mark.scale === "log" ? values.filter((value) => value > 0) : values;
  const [low, high] = mark.limits ?? [known.reduce((a, b) => Math.min(a, b), Infinity), known.reduce((a, b) => Math.max(a, b), -Infinity)];
  if (!known.length && !mark.limits) return [1, 2];
  return mark.scale === "log" ? [Math.min(low, high / 2), high] : [low, high];
}

/** @param {any} mark @param {number} value @param {number} low @param {number} high */
const shareOf = (mark, value, low, high) =>
  mark.scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);

/**
 * Return whether a colour of a ramp is so dark that its text is white, by its luma (ITU-R BT.601).
 * @param {string[]} palette
 * @param {number} share
 */
function isDark(palette, share) {
  const colour = palette[Math.round(Math.min(1, Math.max(0, share || 0)) * (palette.length - 1))];
  const [red, green, blue] = [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16) / 255);
  return 0.299 * red + 0.587 * green + 0.114 * blue < DARK_LUMA;
}

/** @param {Drawing} drawing @param {any} mark @param {number[]} rows @param {boolean[]} dark */
function addCellTexts(drawing, mark, rows, dark) {
  const columns = {
    x: numbersOf(mark, mark.x, rows),
    y: numbersOf(mark, mark.y, rows),
    text: rows.map((row) => String(mark.table.get(mark.text)[row] ?? "")),
    text_color: dark.map((own) => (own ? "#ffffff" : "#111111")),
  };
  const look = { text_align: "center", text_baseline: "middle", text_font_size: letters(8) };
  addGlyph(drawing, mark, mark.series, "Text", { columns, rows, look });
}

/** @param {Drawing} drawing @param {any} mark @param {any} mapper */
function addColourBar(drawing, mark, mapper) {
  const formatter = model("BasicTickFormatter");
  formatter.doFormat = (/** @type {number[]} */ ticks) => ticks.map((value) => FORMATS[mark.format](value));
  const bar = model("ColorBar", {
    color_mapper: mapper,
    formatter,
    title: mark.bar,
    title_text_font_style: "normal",
    title_text_font_size: "12px",
    width: 10,
    padding: 6,
    background_fill_color: null,
  });
  drawing.looks.paint(bar, { title_text_color: "ink", major_label_text_color: "ink" });
  drawing.figure.add_layout(bar, "right");
}

/** @param {Drawing} drawing @param {any} mark */
function addTexts(drawing, mark) {
  for (const { key, rows } of groupedRows(mark, "")) {
    const columns = {
      x: inPanel(mark, "x") ? numbersOf(mark, mark.x, rows) : places(drawing, mark, mark.x, "x", rows),
      y: inPanel(mark, "y") ? numbersOf(mark, mark.y, rows) : places(drawing, mark, mark.y, "y", rows),
    };
    const [right, up] = mark.offset_pt.map((/** @type {number} */ pt) => pt * PX_PER_PT);
    addText(drawing, mark, key, {
      columns: { ...columns, text: rows.map((row) => String(mark.table.get(mark.text)[row] ?? "")) },
      rows,
      look: {
        x_offset: right,
        y_offset: -up,
        text_align: mark.align,
        text_baseline: mark.valign === "center" ? "middle" : mark.valign,
        text_font_size: letters(mark.size),
        text_font_style: [mark.is_bold && "bold", mark.is_italic && "italic"].filter(Boolean).join(" ") || "normal",
        angle: (mark.rotation * Math.PI) / 180,
      },
      ways: { x: inPanel(mark, "x"), y: inPanel(mark, "y") },
      isBoxed: mark.is_boxed,
    });
    if (mark.has_leader) {
      const look = { length: { value: Math.hypot(right, up), units: "screen" }, angle: Math.atan2(up, right), line_width: 1 };
      addGlyph(drawing, mark, key, "Ray", { columns, rows, look, roles: { line_color: "ink" } });
    }
  }
}

/**
 * @param {Drawing} drawing
 * @param {any} mark
 * @param {string} key
 * @param {{columns: Record<string, any[]>, rows?: number[], look: Record<string, any>, ways: {x: boolean, y: boolean}, isBoxed: boolean}} text
 *   `ways`: along which axes places are shares of the panel
 */
function addText(drawing, mark, key, { columns, rows = [], look, ways, isBoxed }) {
  const options = {
    level: ways.x || ways.y ? "annotation" : "glyph",
    ...(ways.x ? { x_range_name: "share" } : {}),
    ...(ways.y ? { y_range_name: "share" } : {}),
  };
  const roles = { text_color: key, ...(isBoxed ? { background_fill_color: "paper" } : {}) };
  addGlyph(drawing, mark, key, "Text", { columns, rows, look: { ...look, padding: isBoxed ? 1 : 0 }, roles, options });
}

/** @param {Drawing} drawing @param {any} mark */
function addReferenceLine(drawing, mark) {
  const place = placed(drawing.panel[mark.axis], mark.value);
  const look = { line_dash: DASHES[mark.dash], line_width: mark.width * PX_PER_PT };
  const across = mark.axis === "x" ? "y" : "x";
  if (!mark.is_beyond && mark.extent) {
    const [from, to] = mark.extent.map((/** @type {number} */ end) => placed(drawing.panel[across], end));
    const columns = { [`${mark.axis}0`]: [place], [`${mark.axis}1`]: [place], [`${across}0`]: [from], [`${across}1`]: [to] };
    addGlyph(drawing, mark, mark.series, "Segment", { columns, look, roles: { line_color: mark.series } });
  } else if (!mark.is_beyond) {
    const span = model("Span", { location: place, dimension: mark.axis === "x" ? "height" : "width", ...look });
    drawing.looks.paint(span, { line_color: mark.series });
    drawing.figure.add_layout(span);
    drawing.spans.push({ key: mark.series, renderer: span });
  }
  if (mark.name) addLineName(drawing, mark, place);
}

/**
 * Return the reference lines whose names stand over the panel.
 * @param {any} panel
 * @returns {any[]}
 */
const namesAbove = (panel) =>
  panel.marks.filter((/** @type {any} */ mark) => mark.type === "ReferenceLine" && mark.name && (mark.axis === "x" || mark.is_beyond));

/**
 * Return the pixels that names of lines and texts take above a panel.
 * @param {any} panel
 */
function roomAbove(panel) {
  const texts = panel.marks.filter((/** @type {any} */ mark) => mark.type === "Texts" && inPanel(mark, "y") && mark.offset_pt[1] > 0);
  const heights = texts.map((/** @type {any} */ mark) => {
    const lines = mark.valign === "bottom" ? Math.max(0, ...Array.from(mark.table.get(mark.text), (text) => String(text).split("\n").length)) : 0;
    return (mark.offset_pt[1] + 1.3 * mark.size * lines) * PX_PER_PT;
  });
  return Math.max(namesAbove(panel).length ? 20 : 6, ...heights);
}

/**
 * Return the places of other named lines that are so near that names on one side would touch.
 * @param {Drawing} drawing
 * @param {any} mark
 * @param {number} place
 * @param {number} room
 * @returns {number[]}
 */
const levelsNear = (drawing, mark, place, room) =>
  drawing.panel.marks
    .filter((/** @type {any} */ other) => other !== mark && other.type === "ReferenceLine" && other.axis === "y" && other.name && !other.is_beyond)
    .map((/** @type {any} */ other) => placed(drawing.panel.y, other.value))
    .filter((/** @type {number} */ other) => Math.abs(other - place) < room);

/** @param {Drawing} drawing @param {any} mark @param {number} place */
function addLineName(drawing, mark, place) {
  const [start, end] = drawing.ends[/** @type {"x" | "y"} */ (mark.axis)];
  const isFar = (place - start) / (end - start) > 0.5;
  if (mark.axis === "x") {
    const columns = { x: [place], y: [1], text: [mark.name] };
    const look = { text_align: isFar ? "right" : "left", text_baseline: "bottom", x_offset: isFar ? 4 : -4, y_offset: -3 };
    addText(drawing, mark, mark.series, { columns, look: { ...look, ...SMALL }, ways: { x: false, y: true }, isBoxed: false });
    return;
  }
  if (mark.is_beyond) {
    const names = namesAbove(drawing.panel).filter((other) => other.is_beyond);
    if (mark !== names[0]) return;
    const text = `${names.map((other) => other.name).join(", ")} (above)`;
    const look = { text_align: "right", text_baseline: "bottom", y_offset: -3, ...SMALL };
    addText(drawing, mark, mark.series, { columns: { x: [1], y: [1], text: [text] }, look, ways: { x: true, y: true }, isBoxed: false });
    return;
  }
  const near = levelsNear(drawing, mark, place, 0.15 * (end - start));
  const higher = near.filter((other) => other > place).length;
  const isBelow = near.length ? higher > 0 : isFar;
  const look = { text_align: "right", text_baseline: isBelow ? "top" : "bottom", x_offset: -4 - NAME_PX * Math.max(0, higher - 1), y_offset: isBelow ? 3 : -3, ...SMALL };
  const columns = { x: [1], y: [place], text: [mark.name] };
  addText(drawing, mark, mark.series, { columns, look, ways: { x: true, y: false }, isBoxed: true });
}

/** @param {Drawing} drawing @param {any} mark */
function addSpan(drawing, mark) {
  const [low, high] = [mark.low, mark.high].map((value) => placed(drawing.panel[mark.axis], value));
  const edges = mark.axis === "x" ? { left: low, right: high } : { bottom: low, top: high };
  const box = model("BoxAnnotation", { ...edges, fill_alpha: mark.alpha, line_color: null, level: "underlay" });
  drawing.looks.paint(box, { fill_color: mark.series });
  drawing.figure.add_layout(box);
}

/** @type {Record<string, (drawing: Drawing, mark: any) => void>} */
const DRAWERS = {
  Bars: addBars,
  Lines: addLines,
  Areas: addAreas,
  Points: addPoints,
  Whiskers: addWhiskers,
  Cells: addCells,
  Texts: addTexts,
  ReferenceLine: addReferenceLine,
  Span: addSpan,
};
