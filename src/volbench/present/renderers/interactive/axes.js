"use strict";
// Axes of a panel: scale, ends, ticks and their texts.

/** @param {string} name @param {Record<string, any>} [attributes] */
const model = (name, attributes = {}) => new (Bokeh.Models.get(name))(attributes);
/** @param {string} text of a file or a person; never read as markup or mathematics */
const plain = (text) => model("PlainText", { text });

const SYMLOG = { base: 4, linear: 0.5 / (1 - 1 / 4) };
const MARGIN = 0.05;
const CATEGORY_MARGIN = 0.6;

/** @param {any} axis */
const isLog = (axis) => axis.scale === "log" || axis.scale === "log2";

/**
 * Return where a value is drawn: symlog axes are linear ones with other numbers.
 * @param {any} axis
 * @param {number} value
 */
function placed(axis, value) {
  if (axis.scale !== "symlog") return value;
  const size = Math.abs(value);
  if (size <= 1) return value * SYMLOG.linear;
  return Math.sign(value) * (SYMLOG.linear + Math.log(size) / Math.log(SYMLOG.base));
}

/** @param {any} axis @param {number} place */
function valueAt(axis, place) {
  if (axis.scale !== "symlog") return place;
  const size = Math.abs(place);
  if (size <= SYMLOG.linear) return place / SYMLOG.linear;
  return Math.sign(place) * SYMLOG.base ** (size - SYMLOG.linear);
}

/**
 * Return the places and texts of the ticks of a category axis.
 * @param {any} axis
 * @returns {[number, string][]}
 */
const categoriesOf = (axis) =>
  axis.categories.map((/** @type {string} */ name, /** @type {number} */ n) => [axis.ticks[n] ?? n, name]);

/**
 * Return both ends of an axis, in places.
 * @param {any} axis
 * @param {number[]} values everything that is drawn along it
 * @returns {[number, number]}
 */
function endsOf(axis, values) {
  if (axis.limits) return axis.limits.map((/** @type {number} */ value) => placed(axis, value));
  if (axis.scale === "category" && axis.categories.length) {
    const places = categoriesOf(axis).map(([place]) => place);
    return [Math.min(...places) - CATEGORY_MARGIN, Math.max(...places) + CATEGORY_MARGIN];
  }
  const known = values.filter((value) => Number.isFinite(value) && (!isLog(axis) || value > 0));
  const low = known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
  if (low > high) return [1, 10];
  if (isLog(axis)) {
    const room = (high / low) ** MARGIN || 1;
    return low === high ? [low / 2, high * 2] : [low / room, high * room];
  }
  const [from, to] = [placed(axis, low), placed(axis, high)];
  const room = MARGIN * (to - from) || 0.5;
  return [from - room, to + room];
}

/** @param {any} axis @param {[number, number]} ends */
function rangeOf(axis, ends) {
  const [start, end] = axis.inverted ? [ends[1], ends[0]] : ends;
  return model("Range1d", { start, end });
}

/** @param {any} axis */
const scaleOf = (axis) => model(isLog(axis) ? "LogScale" : "LinearScale");

/**
 * @param {any} axis
 * @param {[number, number]} ends
 * @param {number} count about how many ticks there is room for
 */
function tickerOf(axis, ends, count) {
  if (axis.scale === "category") return model("FixedTicker", { ticks: categoriesOf(axis).map(([place]) => place) });
  if (axis.ticks.length) {
    const places = axis.ticks.map((/** @type {number} */ value) => placed(axis, value));
    return model("FixedTicker", { ticks: places.sort((/** @type {number} */ a, /** @type {number} */ b) => a - b) });
  }
  if (axis.scale === "symlog") return model("FixedTicker", { ticks: symlogTicks(axis, ends) });
  if (axis.scale === "log2") return model("FixedTicker", { ticks: powersOfTwo(ends, count) });
  const shared = { desired_num_ticks: count, num_minor_ticks: 0 };
  if (axis.scale === "log") {
    const ticks = stepsOfTen(ends);
    return ticks.length ? model("FixedTicker", { ticks }) : model("LogTicker", shared);
  }
  if (axis.scale !== "time") return model("BasicTicker", shared);
  const ticker = (/** @type {number} */ base, /** @type {number[]} */ mantissas, /** @type {number} */ low, /** @type {number | null} */ high) =>
    model("AdaptiveTicker", { ...shared, base, mantissas, min_interval: low, max_interval: high });
  return model("CompositeTicker", {
    ...shared,
    tickers: [
      ticker(10, [1, 2, 5], 0, 0.5),
      ticker(60, [1, 2, 5, 10, 15, 30], 1, 1800),
      ticker(24, [1, 2, 4, 6, 8, 12], 3600, 43200),
      ticker(10, [1, 2, 5], 86400, null),
    ],
  });
}

/** @param {any} axis @param {[number, number]} ends */
function symlogTicks(axis, ends) {
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const powers = Array.from({ length: 13 }, (_, n) => 10 ** n);
  const values = [...powers.map((power) => -power), 0, ...powers];
  return values.map((value) => placed(axis, value)).filter((place) => place >= low && place <= high);
}

/**
 * Return ticks within a few decades, where powers of ten are too few; none for longer axes.
 * @param {[number, number]} ends
 */
function stepsOfTen(ends) {
  const [low, high] = ends.map((end) => Math.log10(end)).sort((a, b) => a - b);
  if (high - low > 2.5) return [];
  const parts = high - low < 1 ? [1, 2, 3, 5] : [1, 3];
  const ticks = [];
  for (let power = Math.floor(low) - 1; power <= high + 1; power += 1) ticks.push(...parts.map((part) => part * 10 ** power));
  return ticks;
}

/** @param {[number, number]} ends @param {number} count */
function powersOfTwo(ends, count) {
  const [low, high] = ends.map((end) => Math.log2(end));
  const step = Math.max(1, Math.ceil((high - low) / Math.max(count, 2)));
  const ticks = [];
  for (let power = Math.ceil(low); power <= high; power += step) ticks.push(2 ** power);
  return ticks;
}

/**
 * Return the model of an axis.
 * @param {any} axis
 * @param {any} ticker
 * @param {Looks} looks
 * @param {{way: "x" | "y", letters: number, isNamed: boolean, lengthPx: number}} room
 */
function axisModel(axis, ticker, looks, { way, letters, isNamed, lengthPx }) {
  const formatter = model("BasicTickFormatter");
  const names = new Map(categoriesOf(axis).map(([place, name]) => [place, isNamed ? clipped(name, letters) : ""]));
  formatter.doFormat = (/** @type {number[]} */ ticks) => axis.scale === "category"
    ? ticks.map((place) => names.get(place) ?? "")
    : ticks.map((place) => FORMATS[axis.format](valueAt(axis, place)));
  const own = model(isLog(axis) ? "LogAxis" : "LinearAxis", {
    ticker,
    formatter,
    axis_label: axis.label ? plain(way === "y" ? inLines(axis.label, lengthPx / 6) : axis.label) : null,
    axis_label_text_font_style: "normal",
    axis_label_text_font_size: "12px",
    major_label_text_font_size: "11.5px",
    minor_tick_line_color: null,
    major_tick_in: 0,
    major_tick_out: axis.scale === "category" ? 0 : 4,
  });
  if (axis.scale !== "category") own.major_label_policy = model("NoOverlap", { min_distance: 6 });
  if (way === "x" && widthOf([...names.values()]) > lengthPx) own.major_label_orientation = Math.PI / 5;
  looks.paint(own, {
    axis_label_text_color: "ink",
    major_label_text_color: "ink",
    axis_line_color: "muted",
    major_tick_line_color: "muted",
  });
  return own;
}

/**
 * Return a title of an axis in lines of so many letters, as far as its words allow.
 * @param {string} title
 * @param {number} letters
 */
const inLines = (title, letters) => title.replace(new RegExp(`(.{1,${Math.max(1, Math.floor(letters))}})(?: |$)`, "g"), "$1\n").trimEnd();

/** @param {string[]} names that stand beside each other */
function widthOf(names) {
  const lines = names.flatMap((name) => name.split("\n"));
  return 7 * names.length * Math.max(0, ...lines.map((line) => line.length + 1));
}

/**
 * Return a name with so many letters a line, cut in its middle: a phone has no room for more, and most names differ at
 * one of their ends. Pointing shows the rest.
 * @param {string} name
 * @param {number} letters
 */
const clipped = (name, letters) => {
  const last = Math.floor(letters / 2);
  const cut = (/** @type {string} */ line) => `${line.slice(0, letters - last - 1)}…${line.slice(line.length - last)}`;
  return name.split("\n").map((line) => (line.length > letters ? cut(line) : line)).join("\n");
};
