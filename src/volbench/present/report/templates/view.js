"use strict";
// State of the view in the URL's fragment, so that a view can be shared: #job=a&direction=read&theme=dark.

const readFragment = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");

const view = { params: readFragment() };

/** @type {(() => void)[]} */
const viewers = [];

/**
 * Change parameters of the view, and show it.
 * @param {Record<string, string | string[]>} changes name to value or values; empty for none
 * @param {boolean} [isStep] whether the browser's Back undoes it
 */
function changeView(changes, isStep = false) {
  for (const [name, values] of Object.entries(changes)) {
    view.params.delete(name);
    for (const value of [values].flat()) if (value) view.params.append(name, value);
  }
  history[isStep ? "pushState" : "replaceState"](null, "", `#${view.params}`);
  viewers.forEach((show) => show());
}

/** @param {HTMLElement} target */
function showTarget(target) {
  for (let part = /** @type {HTMLElement | null} */ (target); part; part = part.parentElement) {
    if (part instanceof HTMLDetailsElement) part.open = true;
  }
  keepInView(target);
}

/**
 * Scroll to an element, and stay there while charts above it are drawn, until the reader goes on.
 * @param {HTMLElement} target
 */
function keepInView(target) {
  const page = new ResizeObserver(() => target.scrollIntoView(/** @type {any} */ ({ behavior: "instant" })));
  page.observe(document.body);
  const stop = new AbortController();
  stop.signal.addEventListener("abort", () => page.disconnect());
  for (const event of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    addEventListener(event, () => stop.abort(), { signal: stop.signal, passive: true });
  }
}

/** Follow a link inside the page: by itself, or beside the state of the view. */
function followView() {
  const isState = location.hash.includes("=");
  if (isState) view.params = readFragment();
  const id = isState ? view.params.get("at") : decodeURIComponent(location.hash.slice(1));
  const target = document.getElementById(id ?? "");
  if (target) showTarget(target);
  if (isState) viewers.forEach((show) => show());
}

addEventListener("hashchange", followView);
addEventListener("popstate", () => {
  view.params = readFragment();
  viewers.forEach((show) => show());
});
document.addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest?.('a[href^="#"]');
  if (!link || ![...view.params].length) return;
  const target = document.getElementById(decodeURIComponent(/** @type {HTMLAnchorElement} */ (link).hash.slice(1)));
  if (!target) return;
  event.preventDefault();
  changeView({ at: target.id });
  showTarget(target);
  target.focus();
});

// Theme: that of the system, unless the reader chooses.
const THEMES = { "": "System", light: "Light", dark: "Dark" };

/** @param {HTMLElement} place */
function addThemeSwitch(place) {
  const options = Object.entries(THEMES).map(([value, text]) => made("option", { value }, text));
  const choice = made("select", {}, ...options);
  choice.addEventListener("change", () => changeView({ theme: choice.value }));
  place.append(made("label", {}, "Theme ", choice));
  viewers.push(() => {
    const theme = view.params.get("theme") ?? "";
    if (theme === (document.documentElement.dataset.theme ?? "") && choice.value === theme) return;
    choice.value = theme;
    showTheme(theme);
  });
}
