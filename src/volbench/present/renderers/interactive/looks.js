"use strict";
// Colours of roles in the page's theme, and how series look.

/** @type {Record<string, number[]>} */
const DASHES = { solid: [], dashed: [7, 4], dotted: [2, 3], dashdot: [7, 3, 2, 3], limit: [5, 3] };

/** @type {Record<string, {shape: string, angle: number}>} */
const MARKERS = {
  circle: { shape: "circle", angle: 0 },
  square: { shape: "square", angle: 0 },
  up: { shape: "triangle", angle: 0 },
  diamond: { shape: "diamond", angle: 0 },
  down: { shape: "inverted_triangle", angle: 0 },
  plus: { shape: "plus", angle: 0 },
  cross: { shape: "x", angle: 0 },
  left: { shape: "triangle", angle: Math.PI / 2 },
  right: { shape: "triangle", angle: -Math.PI / 2 },
  tick: { shape: "dash", angle: Math.PI / 2 },
};

/** @type {Record<string, string>} */
const HATCHES = { "////": "right_diagonal_line", "....": "dot", xxxx: "diagonal_cross", "----": "horizontal_line", "\\\\\\\\": "left_diagonal_line", "++++": "cross", oooo: "ring" };

const darkScheme = matchMedia("(prefers-color-scheme: dark)");

function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  return SETTINGS.themes[chosen || (darkScheme.matches ? "dark" : "light")];
}

/**
 * Series of a plot, and the models that are painted in the colours of their roles.
 */
class Looks {
  /** @param {any} plot */
  constructor(plot) {
    this.series = new Map(plot.series.map((/** @type {any} */ series) => [series.key, series]));
    /** @type {{model: any, roles: Record<string, string>}[]} */
    this.painted = [];
  }

  /**
   * Return the series of a key; a role is a series without marker.
   * @param {string} key
   */
  of(key) {
    return this.series.get(key) ?? { ...SETTINGS.defaults.Series, key, label: "", colour: key };
  }

  /** @param {string} key of a series, or a role */
  colour(key) {
    const { colours } = currentTheme();
    return colours[this.of(key).colour] ?? colours.ink;
  }

  /**
   * Paint properties of a model now, and again whenever the theme changes.
   * @param {any} model
   * @param {Record<string, string>} roles property to key of a series or role
   */
  paint(model, roles) {
    const entry = { model, roles };
    this.painted.push(entry);
    this.#apply(entry);
  }

  repaint() {
    this.painted.forEach((entry) => this.#apply(entry));
  }

  /** @param {{model: any, roles: Record<string, string>}} entry */
  #apply({ model, roles }) {
    for (const [property, key] of Object.entries(roles)) {
      model[property] = property === "hatch_pattern" ? this.#hatch(key) : this.colour(key);
    }
  }

  /** @param {string} key */
  #hatch(key) {
    return HATCHES[currentTheme().hatches[this.of(key).colour]] ?? "blank";
  }
}

/**
 * Return the colours of a ramp from pale to dark.
 * @param {string} name
 * @returns {string[]}
 */
function rampOf(name) {
  const corners = SETTINGS.ramps[currentTheme().is_grey ? "grey" : name];
  const steps = 256;
  return Array.from({ length: steps }, (_, step) => {
    const at = (step / (steps - 1)) * (corners.length - 1);
    const [from, to] = [corners[Math.floor(at)], corners[Math.ceil(at)]];
    const parts = [1, 3, 5].map((start) => {
      const [a, b] = [from, to].map((colour) => parseInt(colour.slice(start, start + 2), 16));
      return Math.round(a + (b - a) * (at % 1)).toString(16).padStart(2, "0");
    });
    return `#${parts.join("")}`;
  });
}
