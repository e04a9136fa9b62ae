"use strict";
// Number formats of axes and hover texts: those of `plots/description.py` and `units.py`, letter for
// letter. tests/browser compares both for thousands of values.

/**
 * Return a number with so many decimals; an exact half goes to the even digit, as in Python.
 * @param {number} value
 * @param {number} decimals
 */
function fixed(value, decimals) {
  const more = 40;
  const exact = Math.abs(value).toFixed(decimals + more);
  const isHalf = /^50*$/.test(exact.slice(-more));
  const cut = exact.slice(0, -more).replace(/\.$/, "");
  const isEven = Number(cut.slice(-1)) % 2 === 0;
  const text = isHalf && isEven ? cut : Math.abs(value).toFixed(decimals);
  return value < 0 && Number(text) !== 0 ? `-${text}` : text;
}

/** @param {string} text */
function withoutZeros(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/**
 * Return a number with so many significant digits, as Python's format ``g`` does.
 * @param {number} value
 * @param {number} precision
 */
function general(value, precision) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (value === 0) return "0";
  const [mantissa, power] = value.toExponential(precision - 1).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < precision) {
    return withoutZeros(fixed(value, precision - 1 - exponent));
  }
  const sign = exponent < 0 ? "-" : "+";
  return `${withoutZeros(mantissa)}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

/**
 * Return three significant digits, never in exponent form.
 * @param {number} value
 */
function digits(value) {
  if (value === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return withoutZeros(fixed(value, Math.min(decimals, 9)));
}

/**
 * @param {number} value
 * @param {string} unit
 * @param {string} space
 */
function scaled(value, unit, space) {
  for (const [factor, prefix] of /** @type {[number, string][]} */ ([[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])) {
    if (Math.abs(value) >= factor * 0.9995) return `${digits(value / factor)}${space}${prefix}${unit}`;
  }
  return `${digits(value)}${space}${unit}`.trimEnd();
}

/** @param {number} value */
const formatCount = (value) => (Number.isNaN(value) ? "n/a" : scaled(value, "", ""));
/** @param {number} value */
const formatRate = (value) => (Number.isNaN(value) ? "n/a" : scaled(value, "B/s", " "));

/** @param {number} bytes */
function formatSize(bytes) {
  let value = bytes;
  for (const suffix of ["", "k", "m", "g"]) {
    const text = digits(value);
    if (value < 1024) {
      const isRounded = suffix === "k" && Number.isInteger(bytes) && Number(text) * 1024 !== bytes;
      return isRounded ? String(bytes) : text + suffix;
    }
    value /= 1024;
  }
  return `${digits(value)}t`;
}

/** @param {number} seconds */
function formatLatency(seconds) {
  if (Number.isNaN(seconds)) return "n/a";
  for (const [factor, unit] of /** @type {[number, string][]} */ ([[1, "s"], [1e-3, "ms"], [1e-6, "us"]])) {
    if (seconds >= factor * 0.9995) return `${digits(seconds / factor)} ${unit}`;
  }
  return seconds === 0 ? "0 s" : `${digits(seconds * 1e9)} ns`;
}

/** @param {number} seconds */
function formatDuration(seconds) {
  if (seconds < 9.95) return `${general(Number(fixed(seconds, 6)) + 0, 2)}s`;
  const whole = Number(fixed(seconds, 0));
  /** @param {number} large @param {number} small */
  const pair = (large, small) => [Math.floor(whole / large), String(Math.floor((whole % large) / small)).padStart(2, "0")];
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return pair(60, 1).join("m ") + "s";
  if (whole < 86400) return pair(3600, 60).join("h ") + "m";
  return pair(86400, 3600).join("d ") + "h";
}

/** @type {Record<string, (value: number) => string>} */
const FORMATS = {
  number: (value) => general(value, 4),
  count: formatCount,
  rate: formatRate,
  latency: formatLatency,
  duration: (value) => formatDuration(value).replace("m 00s", "m").replace("h 00m", "h"),
  size: formatSize,
  bytes: (value) => formatRate(value).replace(/\/s$/, ""),
  percent: (value) => `${general(value, 6)} %`,
  share: (value) => `${general(100 * value, 6)} %`,
};

/**
 * Return a value of a frame's column as text: ``4k``, ``direct``, ``2.5 ms``.
 * @param {string} column
 * @param {string | number | null} value
 */
function columnText(column, value) {
  if (value === null || Number.isNaN(value)) return "n/a";
  if (typeof value === "string") return value;
  if (column === "direct") return value ? "direct" : "buffered";
  const ending = SETTINGS.column_formats.find(([end]) => column.endsWith(end));
  return ending ? FORMATS[ending[1]](value) : Number.isInteger(value) ? String(value) : formatCount(value);
}
