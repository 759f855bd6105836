// What charts are drawn of: texts, marks, legends, and the scale below. Charts are drawn for the width that there is;
// each has its numbers in a table beside it as well.
/** @import {Children} from "../pages/types.js" */
/** @import {Chart, Unit} from "./types.js" */
import {bytes, count, firstThat, html} from "../pages/common.js";
import {svg} from "../pages/svg.js";

/** @typedef {{end: number, ticks: number[]}} Scale */

export const BASELINE = 4; // From the middle of a line of text down to where its letters stand.
export const TICK_LABEL = 16; // From the end of a chart down to where letters stand, of numbers and of the title.
const AXIS_TITLE = 33;
export const AXIS_HEIGHT = 40;
export const ABOVE_ONE = 4; // By how much the line at 1 is longer than the chart.
const TICK_SPACE = 8;
const ROUND = 1e-9; // What arithmetic may add to a whole number of steps.
const STEPS = 5;
const LEAST_SCALE = 1e-12;
const ROUND_STEPS = [1, 2, 2.5, 5, 10];
const THOUSANDS = 10000; // Counts from here on are written in thousands.

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
let font = "";
/** @type {(text: string) => number} */
export function textWidth(text) {
  font ||= `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.font = font;
  return pen.measureText(text).width;
}
// The beginning of a text that goes into some pixels.
/** @type {(text: string, width: number) => string} */
export function fitting(text, width) {
  if (textWidth(text) <= width) return text;
  /** @type {(letters: number) => string} */
  const cut = (letters) => `${text.slice(0, letters)}\u2026`;
  const tooMany = firstThat(1, text.length + 1, (letters) => textWidth(cut(letters)) > width);
  return cut(tooMany - 1);
}

// A scale from 0 on that ends at a round number, with some five steps.
/** @type {(most: number, whole: boolean) => Scale} */
export function scaleTo(most, whole) {
  const rough = Math.max(most, LEAST_SCALE) / STEPS,
    magnitude = 10 ** Math.floor(Math.log10(rough));
  let step = (ROUND_STEPS.find((factor) => factor * magnitude >= rough) ?? 10) * magnitude;
  if (whole) step = Math.max(1, Math.ceil(step));
  const end = step * Math.ceil(most / step - ROUND) || step;
  return {end, ticks: Array.from({length: Math.round(end / step) + 1}, (_, place) => place * step)};
}
/** @type {Record<string, (value: number) => string>} */
export const tickWords = {
  share: (value) => `${Number((100 * value).toPrecision(3))} %`,
  ratio: (value) => String(Number(value.toPrecision(3))),
  count: (value) =>
    value >= THOUSANDS ? `${Number((value / 1000).toPrecision(3)).toLocaleString("en")}k` : count(value),
  bytes: (value) => bytes(Math.round(value)),
};

let drawings = 0;
// A drawing of a figure, with its title and description for those who listen.
/** @type {(figure: Chart, width: number, height: number, ...children: Children[]) => SVGSVGElement} */
export function canvas({title, sentence}, width, height, ...children) {
  const id = `drawing-${++drawings}`;
  return svg(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-labelledby": `${id}-title`,
      "aria-describedby": `${id}-words`,
    },
    svg("title", {id: `${id}-title`}, title),
    svg("desc", {id: `${id}-words`}, sentence),
    ...children,
  );
}
/** @type {(x: number, y: number, text: string, anchor?: string, kind?: string) => SVGElement} */
export const label = (x, y, text, anchor = "start", kind = "") =>
  svg("text", {x, y, "text-anchor": anchor, class: kind || null}, text);
/** @type {(x1: number, y1: number, x2: number, y2: number, kind: string) => SVGElement} */
export const line = (x1, y1, x2, y2, kind) => svg("line", {x1, y1, x2, y2, class: kind});
/** @type {<T extends SVGElement>(element: T, text: string) => T} */
export const titled = (element, text) => {
  element.append(svg("title", {}, text));
  return element;
};
/** @type {<T extends SVGElement>(element: T, colour: string) => T} */
export const filled = (element, colour) => {
  element.style.fill = `var(${colour})`;
  return element;
};

/** @typedef {[words: string, colour: string, shape?: SVGElement | null]} Entry What a colour means. */

/** @type {(entries: Entry[]) => HTMLElement} */
export function legend(entries) {
  return html(
    "ul",
    {class: "legend", "aria-hidden": "true"},
    entries.map(([words, colour, shape]) => {
      const mark = svg(
        "svg",
        {width: 12, height: 12, viewBox: "-6 -6 12 12", class: "mark"},
        filled(shape ?? svg("rect", {x: -5.5, y: -5.5, width: 11, height: 11, rx: 3}), colour),
      );
      return html("li", {}, mark, words);
    }),
  );
}
// The mark of each version has a shape of its own.
/** @type {Record<string, (x: number, y: number) => SVGElement>} */
export const dot = {
  v1: (x, y) => svg("rect", {x: x - 4, y: y - 4, width: 8, height: 8}),
  v2: (x, y) => svg("path", {d: `M${x} ${y - 5.5}L${x + 5.5} ${y}L${x} ${y + 5.5}L${x - 5.5} ${y}Z`}),
  v3: (x, y) => svg("circle", {cx: x, cy: y, r: 5}),
};

// The scale below a chart, with a line at each step and at 1 where that means something.
/**
 * @param {Chart} figure
 * @param {Scale} scale
 * @param {(value: number) => number} place
 * @param {number} width
 * @param {number} bottom
 * @param {Unit} unit
 */
export function axis({drawing}, scale, place, width, bottom, unit) {
  const marks = [];
  let right = -Infinity;
  for (const tick of scale.ticks) {
    const x = place(tick),
      text = tickWords[unit](tick),
      half = textWidth(text) / 2;
    marks.push(line(x, 0, x, bottom, "grid"));
    if (x - half < right + TICK_SPACE) continue;
    right = Math.min(x + half, width);
    marks.push(label(Math.min(x, width - half), bottom + TICK_LABEL, text, "middle"));
  }
  if (drawing.one && scale.end >= 1) marks.push(line(place(1), -ABOVE_ONE, place(1), bottom, "one"));
  marks.push(line(place(0), 0, place(0), bottom, "axis"));
  marks.push(axisTitle(drawing.axis, place(0), bottom, width));
  return marks;
}

// What a scale counts: at its beginning, or as far to the left of it as it needs.
/** @type {(title: string, left: number, bottom: number, width: number) => SVGElement} */
export function axisTitle(title, left, bottom, width) {
  const x = Math.max(0, Math.min(left, width - textWidth(title)));
  return label(x, bottom + AXIS_TITLE, fitting(title, width - x));
}
