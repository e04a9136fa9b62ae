// Charts: drawn when they come into view, in the page's colours, and worked by mouse and keyboard.
// Pictures of the same numbers stay for paper, and where anything here fails.
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).blob();
}

const payload = async (id) =>
  (await unpacked(document.getElementById(id).content.textContent)).text();

let library;
function loadLibrary() {
  library ??= payload("library").then((text) => {
    document.head.append(made("script", { textContent: text }));
    Bokeh.set_log_level("error");
  });
  return library;
}

function paint(models) {
  const style = getComputedStyle(document.documentElement);
  const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
  const set = (model, colours) => {
    const known = Object.entries(colours).filter(([name]) => name in model.properties);
    model.setv(Object.fromEntries(known));
  };
  for (const model of models) {
    if (model.type.endsWith("Axis")) {
      set(model, { axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: soft, major_tick_line_color: soft });
    } else if (model.type === "Grid") {
      set(model, { grid_line_color: line });
    } else if (model.tags?.includes("ink")) {
      set(model.glyph ?? model, { line_color: ink, fill_color: ink, text_color: ink });
    }
  }
}

function switchable(live, models) {
  for (const button of live.querySelectorAll("[data-key]")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", shown);
      for (const model of models) if (model.name === button.dataset.key) model.visible = shown;
    });
  }
}

// Zoom is along the time, latency or rate; a logarithmic axis is cut in shares of its decades.
function zoomable(live, models) {
  const plots = models.filter((model) => model.x_range && model.renderers);
  const ranges = new Map(plots.map((plot) => [plot.x_range, plot.x_scale.type === "LogScale"]));
  const whole = new Map([...ranges.keys()].map((range) => [range, [range.start, range.end]]));
  const change = (reckon) => {
    for (const [range, log] of ranges) {
      const [to, from] = log ? [Math.log, Math.exp] : [Number, Number];
      const [start, end] = reckon(to(range.start), to(range.end)).map(from);
      range.setv({ start, end });
    }
  };
  const scale = (factor) => change((a, b) => [(a + b - (b - a) * factor) / 2, (a + b + (b - a) * factor) / 2]);
  const move = (share) => change((a, b) => [a + (b - a) * share, b + (b - a) * share]);
  const reset = () => whole.forEach(([start, end], range) => range.setv({ start, end }));
  live.querySelector(".zoom").addEventListener("click", ({ target }) => {
    if (target.dataset.zoom) scale(Number(target.dataset.zoom));
    if (target.dataset.move) move(Number(target.dataset.move));
    if (target.dataset.reset !== undefined) reset();
  });
  live.querySelector(".canvas").addEventListener("dblclick", reset);
}

const painted = [];
async function draw(live) {
  await loadLibrary();
  const item = JSON.parse(await payload(live.dataset.payload));
  live.hidden = false;
  await Bokeh.embed.embed_item(item, live.querySelector(".canvas"));
  const models = [...Bokeh.documents.at(-1).all_models];
  painted.push(models);
  paint(models);
  // A finger on a chart scrolls the page; the buttons zoom.
  if (matchMedia("(pointer: coarse)").matches) {
    for (const model of models) if (model.type === "BoxZoomTool") model.active = false;
  }
  switchable(live, models);
  zoomable(live, models);
  live.dataset.drawn = "";
  live.closest("figure").classList.add("drawn");
}

// One after the other: the document that was drawn last is then always the chart's own.
let queue = Promise.resolve();
function drawSoon(live) {
  queue = queue.then(() => draw(live)).catch((error) => {
    live.hidden = true;
    console.error(error);
  });
}

if ("DecompressionStream" in window && "IntersectionObserver" in window) {
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      drawSoon(target.querySelector(":scope > .live"));
    }
  }, { rootMargin: "400px 0px" });
  for (const live of document.querySelectorAll(".live")) {
    const place = live.parentElement;
    if (place.tagName === "DETAILS" && !place.open) {
      place.addEventListener("toggle", () => near.observe(place), { once: true });
    } else {
      near.observe(place);
    }
  }
  document.documentElement.classList.add("scripted");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => painted.forEach(paint));
}
