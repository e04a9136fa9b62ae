"use strict";
// Tables: sorted by their headings, filtered by words, taken away as CSV. Without this script they
// stay as they are.
const LEAST_ROWS = 4;

function made(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function save(name, blob) {
  const link = made("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function compared(left, right, numeric) {
  return numeric ? left - right : left.localeCompare(right, undefined, { numeric: true });
}

// The first click puts large numbers first and words in their order; the third undoes it.
function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  const original = [...table.tBodies[0].rows];
  headings.forEach((heading, place) => {
    const numeric = heading.dataset.numeric !== undefined;
    const orders = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
    const button = made("button", { type: "button" }, ...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const order = orders[orders.indexOf(heading.getAttribute("aria-sort")) + 1];
      for (const other of headings) other.removeAttribute("aria-sort");
      const rows = [...original];
      if (order) {
        heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((one, other) => {
          const [a, b] = [one, other].map((row) => row.cells[place].dataset.value);
          if (a === "" || b === "") return (a === "") - (b === "");
          return sign * compared(a, b, numeric);
        });
      }
      table.tBodies[0].append(...rows);
    });
  });
}

// All words must stand in a row; a word after a minus must not.
function matches(text, words) {
  return words.every((word) =>
    word.length > 1 && word.startsWith("-") ? !text.includes(word.slice(1)) : text.includes(word));
}

function filterable(table, bar) {
  const rows = [...table.tBodies[0].rows];
  const texts = rows.map((row) =>
    [...row.cells].map((cell) => `${cell.textContent} ${cell.title}`).join(" ").toLowerCase());
  const field = made("input", { type: "search", placeholder: "such as: read -cached" });
  const told = made("output");
  const doubted = made("input", { type: "checkbox" });
  const update = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      const out = doubted.checked && row.dataset.doubted === undefined;
      row.hidden = out || !matches(texts[place], words);
      shown += !row.hidden;
    });
    told.textContent = `${shown} of ${rows.length} rows`;
  };
  field.addEventListener("input", update);
  doubted.addEventListener("change", update);
  bar.append(made("label", {}, "Filter rows ", field));
  if (rows.some((row) => row.dataset.doubted !== undefined)) {
    bar.append(made("label", {}, doubted, " only rows in doubt"));
  }
  bar.append(told);
  update();
}

// RFC 4180: numbers in full, as they were measured, and only the rows that are shown.
function csv(table) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const lines = rows.map((row) => [...row.cells].map((cell) => cell.dataset.value));
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  return [names, ...lines].map((line) => line.map(quoted).join(",") + "\r\n").join("");
}

for (const table of document.querySelectorAll("table.data")) {
  const bar = made("div", { className: "bar" });
  table.closest(".scroll").before(bar);
  sortable(table);
  if (table.tBodies[0].rows.length >= LEAST_ROWS) filterable(table, bar);
  const button = made("button", { type: "button" }, "Rows as CSV");
  button.setAttribute("aria-label", `Rows of ${table.dataset.file} as CSV`);
  button.addEventListener("click", () =>
    save(`${table.dataset.file}.csv`, new Blob([csv(table)], { type: "text/csv" })));
  bar.append(button);
}
