"use strict";
// Filters over all charts and tables, in a bar that stays in view.

const MANY_VALUES = 12;
const MOST_OPTIONS = 200; // a menu of thousands takes seconds to open

/**
 * Called whenever filters have changed.
 * @type {(() => void)[]}
 */
const filterListeners = [];

/** @param {[string, string, string]} dimension */
function filterMenu([name, title, format]) {
  const values = runs.valuesOf(name);
  const count = made("span", { className: "chosen" });
  const search = made("input", { type: "search", placeholder: "narrow the list" });
  search.setAttribute("aria-label", `Search in ${title}`);
  const list = made("div");
  const options = made("div", { className: "options" }, ...(values.length > MANY_VALUES ? [search] : []), list);
  options.setAttribute("role", "group");
  options.setAttribute("aria-label", title);
  const menu = made("details", { className: "menu" }, made("summary", {}, `${title} `, count), options);
  menu.setAttribute("name", "filter");
  const chosen = () => new Set(view.params.getAll(name));
  const fill = () => list.replaceChildren(...optionsOf(format, values, search.value, chosen()));
  search.addEventListener("input", fill);
  menu.addEventListener("toggle", () => menu.open && values.length > MOST_OPTIONS && fill());
  fill();
  list.addEventListener("change", (/** @type {Event} */ event) => {
    const box = /** @type {HTMLInputElement} */ (event.target);
    const now = chosen();
    if (box.checked) now.add(box.value);
    else now.delete(box.value);
    changeView({ [name]: values.filter((value) => now.has(value)) });
  });
  viewers.push(() => {
    const now = chosen();
    for (const box of /** @type {NodeListOf<HTMLInputElement>} */ (list.querySelectorAll("input"))) box.checked = now.has(box.value);
    const picked = values.filter((value) => now.has(value));
    count.textContent = picked.length === 1 ? dimensionText(format, picked[0]) : picked.length ? `${picked.length} of ${values.length}` : "all";
    menu.classList.toggle("active", picked.length > 0);
  });
  return menu;
}

/**
 * @param {string} format @param {string[]} values @param {string} sought @param {Set<string>} chosen
 * @returns {HTMLElement[]} the first values with a text, those that are chosen, and how many are not listed
 */
function optionsOf(format, values, sought, chosen) {
  const found = values.filter((value) => dimensionText(format, value).toLowerCase().includes(sought.toLowerCase()));
  const listed = found.filter((value, n) => n < MOST_OPTIONS || chosen.has(value));
  const labels = listed.map((value) => {
    const box = made("input", { type: "checkbox", value, checked: chosen.has(value) });
    return made("label", {}, box, ` ${dimensionText(format, value)}`);
  });
  const rest = found.length - listed.length;
  return rest ? [...labels, made("p", {}, `${rest.toLocaleString("en-US")} more: narrow the list`)] : labels;
}

/** @param {HTMLElement} bar */
function fillFilterBar(bar) {
  const affected = made("input", { type: "checkbox" });
  affected.addEventListener("change", () => changeView({ affected: affected.checked ? "1" : "" }));
  const clear = made("button", { type: "button" }, "Clear filters");
  clear.addEventListener("click", clearFilters);
  const count = made("output");
  const isAnyAffected = runs.column("severity").some(Boolean);
  bar.append(...runs.dimensions.map(filterMenu));
  if (isAnyAffected) bar.append(made("label", { title: "runs with a warning or an invalid number" }, affected, " with warnings only"));
  bar.append(count, clear);
  addComparison(bar);
  bar.hidden = false;
  const every = new Set(runs.column("number")).size;
  viewers.push(() => {
    affected.checked = view.params.has("affected");
    clear.disabled = !runs.isFiltered;
    count.textContent = `${(runs.numbers?.size ?? every).toLocaleString("en-US")} of ${runsText(every)}`;
  });
}

/** @param {string} value @returns {string} as a condition has it; "" for one that none can have */
function conditionText(value) {
  if (/^[^\s()=!<>~"']+$/.test(value)) return value;
  const quote = ['"', "'"].find((mark) => !value.includes(mark));
  return quote ? quote + value + quote : "";
}

/** @returns {string} the filters as an option of commands; "" where no condition says the same */
function whereOption() {
  const chosen = runs.dimensions.map(([name]) => view.params.getAll(name).map((value) => [name, conditionText(value)])).filter((values) => values.length);
  if (!chosen.length || chosen.flat().some(([, text]) => !text)) return "";
  const parts = chosen.map((values) => values.map(([name, text]) => `${name}==${text}`).join(" or "));
  const joined = parts.map((part) => (parts.length > 1 && part.includes(" or ") ? `(${part})` : part)).join(" and ");
  return `--where '${joined.replaceAll("'", "'\\''")}'`;
}

/** @returns {Node[]} a button for each filter without which some run is left */
function loosened() {
  const used = [["affected", "with warnings only"], ...runs.dimensions].filter(([name]) => view.params.has(name));
  return used.flatMap(([name, title]) => {
    const fewer = new URLSearchParams(view.params);
    fewer.delete(name);
    const lets = runs.matcher(fewer);
    const left = runs.column("number").filter((/** @type {number} */ _, /** @type {number} */ row) => !lets || lets(row));
    if (!left.length) return [];
    const button = made("button", { type: "button" }, `Drop ${title}: ${runsText(new Set(left).size)}`);
    button.addEventListener("click", () => changeView({ [name]: "" }));
    return [button];
  });
}

/** @param {number} count */
const runsText = (count) => `${count.toLocaleString("en-US")} run${count === 1 ? "" : "s"}`;

/** Say what the filters keep, and how a command keeps the same; of none, which filter to drop. */
function showKept() {
  const place = /** @type {HTMLElement} */ (document.getElementById("kept"));
  const where = whereOption();
  const count = runs.numbers?.size ?? 0;
  place.hidden = !runs.isFiltered || (count > 0 && !where);
  if (place.hidden) return;
  place.replaceChildren(...(count
    ? [`The filters keep ${runsText(count)}. The same in volbench plot, compare and export: `, made("code", {}, where)]
    : [made("strong", {}, "No run fits all filters. "), ...loosened()]));
}

function clearFilters() {
  changeView({ affected: "", ...Object.fromEntries(runs.dimensions.map(([name]) => [name, ""])) });
}

const filterKey = () => JSON.stringify(["affected", ...runs.dimensions.map(([name]) => name)].map((name) => view.params.getAll(name)));

// A menu closes when the reader goes on.
document.addEventListener("click", (event) => {
  for (const menu of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll(".menu[open]"))) {
    if (!menu.contains(/** @type {Node} */ (event.target))) menu.open = false;
  }
});

/**
 * Keys: / goes to the filters, c clears them, t changes the theme, ? lists the keys.
 * @type {Record<string, () => void>}
 */
const KEYS = {
  "/": () => /** @type {HTMLElement | null} */ (document.querySelector("#filters summary"))?.focus(),
  c: () => clearFilters(),
  t: () => {
    const names = Object.keys(THEMES);
    changeView({ theme: names[(names.indexOf(view.params.get("theme") ?? "") + 1) % names.length] });
  },
  "?": () => /** @type {HTMLDialogElement} */ (document.getElementById("keys")).showModal(),
};

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.key === "Escape") {
    for (const menu of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll(".menu[open]"))) {
      menu.open = false;
      menu.querySelector("summary")?.focus();
      return;
    }
    if (view.params.has("run") || view.params.has("compare")) closePanel();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input:not([type=checkbox]), select, textarea")) return;
  if (!KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

/**
 * Show how many of its runs the filters keep in an element; hide a part that has none left.
 * @param {HTMLElement} element with its runs
 * @param {HTMLElement} text
 * @param {HTMLElement | null} part
 * @param {(count: number) => string} written
 */
function countKept(element, text, part, written) {
  const own = (element.dataset.runs ?? "").split(" ").filter(Boolean).map(Number);
  const kept = own.filter((number) => runs.keeps([number], "")).length;
  text.dataset.all ??= text.textContent ?? "";
  text.textContent = runs.isFiltered && own.length ? written(kept) : text.dataset.all;
  if (part) part.hidden = own.length > 0 && !kept;
}

/** Keep the findings of runs that the filters keep, and count them. */
function filterFindings() {
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("table.findings tbody tr"))) {
    const where = /** @type {HTMLElement} */ (row.querySelector(".where"));
    countKept(row, where, row, (count) => `${count} of: ${where.dataset.all}`);
  }
  for (const count of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".quality-details .count"))) {
    const part = /** @type {HTMLElement} */ (count.closest("details"));
    countKept(count, count, part, runsText);
    const example = /** @type {HTMLElement} */ (part.querySelector("summary .soft"));
    example.dataset.all ??= example.textContent ?? "";
    const kept = runs.isFiltered && part.querySelector("tbody tr:not([hidden]) td:nth-child(3)");
    example.textContent = kept ? kept.textContent : example.dataset.all;
  }
}

/** Count the affected runs among those that the filters keep. */
function filterBadges() {
  for (const badge of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".quality"))) {
    const own = runs.rows().filter((row) => runs.value("key", row).startsWith(badge.dataset.prefix));
    const numbers = (/** @type {number[]} */ rows) => new Set(rows.map((row) => runs.value("number", row))).size;
    const affected = numbers(own.filter((row) => runs.value("severity", row) !== ""));
    badge.dataset.all ??= badge.textContent ?? "";
    const kept = numbers(own);
    const counted = kept ? `${affected} of ${kept} filtered runs affected` : "no run fits the filters";
    badge.textContent = runs.isFiltered ? `Data quality: ${counted}` : badge.dataset.all;
    badge.classList.toggle("clean", runs.isFiltered && kept > 0 && !affected);
    badge.classList.toggle("empty", runs.isFiltered && !kept);
  }
}

/** Say of sentences and figures that filters cannot change that they are of all runs. */
function markUnfiltered() {
  for (const mark of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".of-all"))) mark.hidden = !runs.isFiltered;
}

shaping.plot = filteredPlot;

/** Read the runs, and keep charts and tables as the view says. */
async function startView() {
  for (const place of document.querySelectorAll(".theme")) addThemeSwitch(/** @type {HTMLElement} */ (place));
  const bar = document.getElementById("filters");
  if (bar && document.getElementById("runs")) {
    runs = new Runs(decodedTable(JSON.parse(await payload("runs"))));
    let before = "";
    viewers.push(() => {
      if (filterKey() === before) return;
      before = filterKey();
      const wasFiltered = runs.isFiltered;
      runs.filter();
      filterListeners.forEach((act) => act());
      if (runs.isFiltered || wasFiltered) redrawCharts();
    });
    filterListeners.push(filterFindings, filterBadges, markUnfiltered, showKept);
    fillFilterBar(bar);
    startExplorer();
    startPanel();
    // Headings that links lead to stand below the bar, whatever its height.
    new ResizeObserver(() => {
      const isFixed = getComputedStyle(bar).position === "sticky";
      document.documentElement.style.scrollPaddingTop = isFixed ? `${bar.offsetHeight + 8}px` : "";
    }).observe(bar);
  }
  viewers.forEach((show) => show());
  followView();
}
