"use strict";
// Paper: charts are drawn, in light colours, before the page is printed by its own button.

/** Put a copy of each canvas into the page, which paper can scale; those of Bokeh have a fixed width. */
function addPaperCopies() {
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

const twoFrames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

/** @param {string} theme */
async function showTheme(theme) {
  document.documentElement.dataset.theme = theme;
  charts.forEach((chart) => chart.looks.repaint());
  await twoFrames();
}

async function drawEverything() {
  for (const place of document.querySelectorAll(".chart")) {
    await drawOnce(place);
    for (const cell of place.querySelectorAll(".panel")) await drawOnce(cell);
  }
}

addEventListener("beforeprint", addPaperCopies);
addEventListener("afterprint", removePaperCopies);

for (const button of document.querySelectorAll("button.print")) {
  button.addEventListener("click", async () => {
    const theme = document.documentElement.dataset.theme ?? "";
    await drawEverything();
    await showTheme("light");
    print();
    await showTheme(theme);
  });
}
document.documentElement.classList.add("scripted");
