"use strict";
// Paper: charts are drawn, in light colours, before the page is printed.

/** Put a copy of each canvas into the page, which paper can scale; those of Bokeh have a fixed width. */
function addPaperCopies() {
  if (document.querySelector("canvas.paper")) return; // A page that is printed twice has one copy of each
  for (const { drawn, cells } of charts) {
    for (const [n, { view }] of drawn) {
      if (!view || cells[n].closest(SCREEN_ONLY)) continue;
      const { canvas } = view.export("png");
      canvas.className = "paper";
      cells[n].append(canvas);
    }
  }
}

function removePaperCopies() {
  for (const copy of document.querySelectorAll("canvas.paper")) copy.remove();
}

const twoFrames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** @param {string} theme */
async function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  charts.forEach((chart) => chart.looks.repaint());
  await twoFrames();
}

/** @type {HTMLDetailsElement[]} */
const unfolded = [];

/** Parts that paper leaves out, or shows folded: they stay in the page. */
const SCREEN_ONLY = ".screen-only, .quality-details details, .campaign > section:not(.answer), .campaign:nth-of-type(n+4) .first, section .panel:nth-child(n+7)";

/** On paper nothing can be unfolded, so what it shows is. */
function unfold() {
  for (const part of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details:not([open]):not(.menu)"))) {
    if (part.closest(SCREEN_ONLY)) continue;
    part.open = true;
    unfolded.push(part);
  }
}

function fold() {
  for (const part of unfolded.splice(0)) part.open = false;
}

async function drawEverything() {
  unfold();
  await twoFrames();
  for (const place of document.querySelectorAll(".chart")) {
    if (place.closest(SCREEN_ONLY)) continue;
    await drawOnce(place);
    for (const cell of place.querySelectorAll(".panel")) if (!cell.closest(SCREEN_ONLY)) await drawOnce(cell);
  }
}

async function printEverything() {
  const theme = document.documentElement.dataset.theme ?? "";
  await drawEverything();
  await showTheme("light");
  print();
  await showTheme(theme);
}

addEventListener("beforeprint", () => {
  unfold();
  addPaperCopies();
});
addEventListener("afterprint", () => {
  removePaperCopies();
  fold();
});

// A browser's own print command does not wait for what is drawn, so the keys for it are ours.
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "p" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  printEverything();
});
for (const button of document.querySelectorAll("button.print")) button.addEventListener("click", printEverything);

// Its menu can't be caught: charts of a page that is left alone are drawn ahead.
const MOST_AHEAD = 60;
async function drawAhead() {
  let count = 0;
  for (const place of document.querySelectorAll(".chart")) {
    if (place.closest("details:not([open])")) continue;
    await idle();
    await drawOnce(place);
    for (const cell of place.querySelectorAll(".panel")) {
      if (++count > MOST_AHEAD) return;
      await idle();
      await drawOnce(cell);
    }
  }
}

/** @returns {Promise<unknown>} */
const idle = () => new Promise((done) => ("requestIdleCallback" in window ? requestIdleCallback(done) : setTimeout(done, 200)));

addEventListener("load", () => setTimeout(drawAhead, 3000));
document.documentElement.classList.add("scripted");
