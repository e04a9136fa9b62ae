"use strict";
// Tables: sorted by their headings, filtered by words, saved as CSV. Without this script they stay
// as they are.
const MIN_ROWS = 4;

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
 * Sort by a click on a heading: large numbers or first words first; the third click undoes it.
 * @param {any} table
 */
function makeSortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  const original = [...table.tBodies[0].rows];
  headings.forEach((heading, place) => {
    const isNumeric = heading.dataset.numeric !== undefined;
    const orders = isNumeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const button = made("button", { type: "button" }, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const chosen = orders[orders.indexOf(heading.getAttribute("aria-sort")) + 1];
      for (const other of headings) other.removeAttribute("aria-sort");
      const rows = [...original];
      if (chosen) {
        heading.setAttribute("aria-sort", chosen);
        const sign = chosen === "ascending" ? 1 : -1;
        rows.sort((row, other) => {
          const [a, b] = [row, other].map((own) => own.cells[place].dataset.value);
          if (a === "" || b === "") return Number(a === "") - Number(b === "");
          return sign * order(a, b, isNumeric);
        });
      }
      table.tBodies[0].append(...rows);
    });
  });
}

/**
 * All words must be in the text; a word after a minus must not.
 * @param {string} text
 * @param {string[]} words
 */
const matches = (text, words) =>
  words.every((word) =>
    word.length > 1 && word.startsWith("-") ? !text.includes(word.slice(1)) : text.includes(word));

/** @param {any} table @param {HTMLElement} bar */
function makeFilterable(table, bar) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) =>
    [...row.cells].map((cell) => `${cell.textContent} ${cell.title}`).join(" ").toLowerCase());
  const field = made("input", { type: "search", placeholder: "such as: read -cached" });
  const count = made("output");
  const isWarned = made("input", { type: "checkbox" });
  const update = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, place) => {
      row.hidden = (isWarned.checked && row.dataset.warned === undefined) || !matches(texts[place], words);
    });
    count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  field.addEventListener("input", update);
  isWarned.addEventListener("change", update);
  bar.append(made("label", {}, "Filter rows ", field));
  if (rows.some((row) => row.dataset.warned !== undefined)) {
    bar.append(made("label", {}, isWarned, " only rows with warnings"));
  }
  bar.append(count);
  update();
}

/**
 * Return the rows that are shown as CSV (RFC 4180), with numbers in full.
 * @param {any} table
 */
function csv(table) {
  const quoted = (/** @type {string} */ text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const lines = rows.map((row) => [...row.cells].map((cell) => cell.dataset.value));
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  return [names, ...lines].map((line) => line.map(quoted).join(",") + "\r\n").join("");
}

for (const table of /** @type {NodeListOf<any>} */ (document.querySelectorAll("table.data"))) {
  const bar = made("div", { className: "bar" });
  table.closest(".scroll").before(bar);
  makeSortable(table);
  if (table.tBodies[0].rows.length >= MIN_ROWS) makeFilterable(table, bar);
  const button = made("button", { type: "button" }, "Rows as CSV");
  button.setAttribute("aria-label", `Rows of ${table.dataset.file} as CSV`);
  button.addEventListener("click", () =>
    save(`${table.dataset.file}.csv`, new Blob([csv(table)], { type: "text/csv" })));
  bar.append(button);
}

// Downloads are saved uncompressed.
for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(".downloads a[download]"))) {
  const name = link.download.replace(/\.gz$/, "");
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    save(name, await unpacked(link.href.split(",")[1]));
  });
}

/** Unfold what a link leads to. */
function unfoldTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", unfoldTarget);
unfoldTarget();
