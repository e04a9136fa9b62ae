"use strict";
// Sorting: each heading of a sortable table gets a button; without a script the table stays as it is.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  [...table.tHead.rows[0].cells].forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    const numeric = heading.dataset.numeric !== undefined;
    button.addEventListener("click", () => {
      const was = heading.getAttribute("aria-sort");
      const first = numeric ? "descending" : "ascending";
      const second = numeric ? "ascending" : "descending";
      const order = was === null ? first : was === first ? second : null;
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      const rows = [...original];
      if (order !== null) {
        heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        rows.sort((a, b) => {
          const left = a.cells[place].dataset.value;
          const right = b.cells[place].dataset.value;
          if (left === "" || right === "") return (left === "") - (right === "");
          return sign * (numeric ? left - right : left.localeCompare(right));
        });
      }
      body.append(...rows);
    });
  });
}
// On paper nothing can be unfolded, so everything is.
const opened = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not([open])")) {
    part.open = true;
    opened.push(part);
  }
});
addEventListener("afterprint", () => {
  for (const part of opened.splice(0)) part.open = false;
});
