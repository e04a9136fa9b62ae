"use strict";
// Paper: charts are drawn, in light colours, before the page is printed.

/** Put a copy of each canvas into the page, which paper can scale; those of Bokeh have a fixed width. */
function addPaperCopies() {
  if (document.querySelector("canvas.paper")) return; // A page that is printed twice has one copy of each
  for (const { drawn, cells } of charts) {
    for (const [n, { view }] of drawn) {
      if (!view) continue;
      const { canvas } = view.export("png");
      canvas.className = "paper";
      cells[n].append(canvas);
    }
  }
}

function removePaperCopies() {
  for (const copy of document.querySelectorAll("canvas.paper")) copy.remove();
}

async function drawEverything() {
  for (const place of document.querySelectorAll(".chart")) {
    await drawOnce(place);
    for (const cell of place.querySelectorAll(".panel")) await drawOnce(cell);
  }
}

const twoFrames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** @param {string} theme */
async function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  charts.forEach((chart) => chart.looks.repaint());
  await twoFrames();
}

async function printEverything() {
  const theme = document.documentElement.dataset.theme ?? "";
  await drawEverything();
  await showTheme("light");
  print();
  await showTheme(theme);
}

addEventListener("beforeprint", addPaperCopies);
addEventListener("afterprint", removePaperCopies);

// A browser's own print command does not wait for what is drawn, so the keys for it are ours.
addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "p" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  event.preventDefault();
  printEverything();
});
for (const button of document.querySelectorAll("button.print")) button.addEventListener("click", printEverything);

// Its menu can't be caught: all charts are drawn ahead.
addEventListener("load", () => setTimeout(drawEverything, 1000));
for (const text of document.querySelectorAll(".waiting")) text.textContent = "Drawing the chart ...";
document.documentElement.classList.add("scripted");
