"use strict";
// Tables: sorted by their headings, filtered by words and by the page's filters, saved as CSV.
// Without this script they stay as they are. Rows beyond the first are made when they are shown.
const MIN_ROWS = 4;
const ROWS_AT_ONCE = 100;

/** @param {string} name @param {Blob} blob */
function save(name, blob) {
  const link = made("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/** @param {string} left @param {string} right @param {boolean} isNumeric */
const order = (left, right, isNumeric) =>
  isNumeric ? Number(left) - Number(right) : left.localeCompare(right, undefined, { numeric: true });

/**
 * All words must be in the text; a word after a minus must not.
 * @param {string} text
 * @param {string[]} words
 */
const matches = (text, words) =>
  words.every((word) =>
    word.length > 1 && word.startsWith("-") ? !text.includes(word.slice(1)) : text.includes(word));

/**
 * A row: what it is sorted and filtered by, and how its element is had.
 * @typedef {{values: string[], text: string, runs: number[], direction: string, isWarned: boolean, element: () => HTMLElement}} Row
 */

/** @param {any} element of the table @returns {Row} */
function rowOf(element) {
  const cells = [...element.cells];
  return {
    values: cells.map((cell) => cell.dataset.value),
    text: cells.map((cell) => `${cell.textContent} ${cell.title}`).join(" ").toLowerCase(),
    runs: (element.dataset.runs ?? "").split(" ").filter(Boolean).map(Number),
    direction: element.dataset.direction ?? "",
    isWarned: element.dataset.warned !== undefined,
    element: () => element,
  };
}

/**
 * Return a row that the page carries compressed.
 * @param {any} form its runs, direction and cells: text, value, title, badges
 * @param {any} table
 * @returns {Row}
 */
function packedRow([runs, direction, cells], table) {
  /** @type {HTMLElement | undefined} */
  let element;
  const texts = cells.map((/** @type {string[]} */ [text, , title = ""]) => `${text} ${title}`);
  const badges = cells[0][3] ?? [];
  return {
    values: cells.map((/** @type {string[]} */ [text, value]) => value ?? text),
    text: [...texts, ...badges.map((/** @type {string[]} */ [rule]) => rule)].join(" ").toLowerCase(),
    runs,
    direction,
    isWarned: badges.length > 0,
    element: () => (element ??= rowElement({ runs, direction, cells }, table)),
  };
}

/**
 * Open the runs of a row by a click on it, or by its heading.
 * @param {{runs: number[], element: () => HTMLElement}} row
 */
function makeOpenable({ runs, element }) {
  const row = element();
  const text = row.querySelector("th")?.firstChild;
  if (!runs.length || !(text instanceof Text)) return;
  const button = made("button", { type: "button", className: "open-run", title: "open this run" }, text.data.trimEnd());
  text.replaceWith(button, " ");
  row.classList.add("openable");
  row.addEventListener("click", (event) => {
    const isOwn = /** @type {Element} */ (event.target).closest("a, button:not(.open-run)");
    if (!isOwn && !getSelection()?.toString()) openRuns(runs);
  });
}

/** @param {{runs: number[], direction: string, cells: any[]}} row @param {any} table */
function rowElement({ runs, direction, cells }, table) {
  const headings = table.tHead.rows[0].cells;
  const elements = cells.map(([text, , title = "", badges = []], n) => {
    const cell = made(n ? "td" : "th", { title }, text);
    if (!n) cell.scope = "row";
    if (headings[n].dataset.numeric !== undefined) cell.className = "number";
    for (const [rule, severity, message, href] of badges) {
      cell.append(" ", made("a", { className: `badge ${severity}`, href, title: `${severity}: ${message}` }, rule));
    }
    return cell;
  });
  const element = made("tr", {}, ...elements);
  element.dataset.runs = runs.join(" ");
  element.dataset.direction = direction;
  makeOpenable({ runs, element: () => element });
  return element;
}

/** A table with the bar over it. */
class DataTable {
  /** @param {any} table */
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0];
    this.headings = [...table.tHead.rows[0].cells];
    this.rows = /** @type {HTMLElement[]} */ ([...this.body.rows]).map(rowOf);
    this.rows.forEach(makeOpenable);
    this.shown = this.rows;
    this.most = Math.max(ROWS_AT_ONCE, this.rows.length);
    this.words = /** @type {string[]} */ ([]);
    this.isWarnedOnly = false;
    this.sorted = { place: -1, order: "" };
    this.bar = made("div", { className: "bar" });
    this.count = made("output");
    this.more = made("button", { type: "button", className: "more", hidden: true });
    this.more.addEventListener("click", () => this.showMore());
    table.closest(".scroll").before(this.bar);
    table.closest(".scroll").after(this.more);
    this.headings.forEach((heading, place) => this.#makeSortable(heading, place));
    const packed = document.getElementById(`${table.dataset.file}-rows`);
    this.total = Number(packed?.dataset.total ?? this.rows.length);
    this.ready = packed ? this.#unpack(packed.id) : Promise.resolve();
    if (this.total >= MIN_ROWS) this.#makeFilterable();
    this.#addSaving();
    filterListeners.push(() => this.show());
  }

  /** @param {string} id */
  async #unpack(id) {
    const forms = JSON.parse(await payload(id));
    this.rows = [...this.rows, ...forms.map((/** @type {any} */ form) => packedRow(form, this.table))];
    this.show();
  }

  /**
   * Sort by a click on a heading: large numbers or first words first; the third click undoes it.
   * @param {any} heading
   * @param {number} place
   */
  #makeSortable(heading, place) {
    const orders = heading.dataset.numeric !== undefined ? ["descending", "ascending"] : ["ascending", "descending"];
    const button = made("button", { type: "button" }, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const chosen = orders[orders.indexOf(heading.getAttribute("aria-sort")) + 1] ?? "";
      for (const other of this.headings) other.removeAttribute("aria-sort");
      if (chosen) heading.setAttribute("aria-sort", chosen);
      this.sorted = { place, order: chosen };
      this.show();
    });
  }

  #makeFilterable() {
    const field = made("input", { type: "search", placeholder: "such as: read -cached" });
    const isWarned = made("input", { type: "checkbox" });
    field.addEventListener("input", () => {
      this.words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      this.show();
    });
    isWarned.addEventListener("change", () => {
      this.isWarnedOnly = isWarned.checked;
      this.show();
    });
    this.bar.append(made("label", {}, "Filter rows ", field));
    if (this.rows.some((row) => row.isWarned)) this.bar.append(made("label", {}, isWarned, " only rows with warnings"));
    this.bar.append(this.count);
    this.show();
  }

  #addSaving() {
    const { file } = this.table.dataset;
    const button = made("button", { type: "button" }, "Rows as CSV");
    button.setAttribute("aria-label", `Rows of ${file} as CSV`);
    button.addEventListener("click", () => save(`${file}.csv`, new Blob([this.csv()], { type: "text/csv" })));
    this.bar.append(button);
  }

  /** Show the rows that filters and words keep, in their order, the first of many. */
  show() {
    const kept = this.rows.filter((row) =>
      (!this.isWarnedOnly || row.isWarned) && matches(row.text, this.words) && (!runs || runs.keeps(row.runs, row.direction)));
    const { place, order: way } = this.sorted;
    if (way) {
      const isNumeric = this.headings[place].dataset.numeric !== undefined;
      const sign = way === "ascending" ? 1 : -1;
      kept.sort(({ values: { [place]: a } }, { values: { [place]: b } }) =>
        a === "" || b === "" ? Number(a === "") - Number(b === "") : sign * order(a, b, isNumeric));
    }
    this.shown = kept;
    this.body.replaceChildren(...kept.slice(0, this.most).map((row) => row.element()));
    if (!kept.length) this.body.append(made("tr", {}, made("td", { colSpan: this.headings.length, className: "soft" }, "No row fits the filters.")));
    const rest = kept.length - this.most;
    this.more.hidden = rest <= 0;
    this.more.textContent = `Show ${Math.min(rest, 5 * ROWS_AT_ONCE)} more of ${kept.length.toLocaleString("en-US")} rows`;
    this.count.textContent = `${kept.length.toLocaleString("en-US")} of ${this.total.toLocaleString("en-US")} row${this.total === 1 ? "" : "s"}`;
  }

  showMore() {
    this.most += 5 * ROWS_AT_ONCE;
    this.show();
  }

  /** Return the rows that are kept as CSV (RFC 4180), with numbers in full. */
  csv() {
    const quoted = (/** @type {string} */ text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const names = this.headings.map((cell) => cell.textContent);
    return [names, ...this.shown.map((row) => row.values)].map((line) => line.map(quoted).join(",") + "\r\n").join("");
  }
}

const tables = [.../** @type {NodeListOf<any>} */ (document.querySelectorAll("table.data"))].map((table) => new DataTable(table));

// Downloads are saved uncompressed.
for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".downloads a[download]"))) {
  const name = link.download.replace(/\.gz$/, "");
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    save(name, await unpacked(link.href.split(",")[1]));
  });
}

startView();
