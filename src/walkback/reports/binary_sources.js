// Which table the rules of a function are from: its kind as a word and a colour.
/** @import {Choice} from "./binary_choices.js" */
/** @import {Binary} from "./binary_data.js" */
/** @import {Paint, Pen, Lane, LineDrawing} from "./binary_lanes.js" */
/** @import {Source} from "./types.js" */
import {bytes, counted, html} from "../pages/common.js";

/** @type {Record<string, {colour: string, words: string, part: number}>} */
const KINDS = {
  cfi: {colour: "eh", words: "call frame information", part: 0.25},
  go: {colour: "c4", words: "Go's table", part: 0.5},
  orc: {colour: "c3", words: "the kernel's ORC table", part: 0.5},
  code: {colour: "c7", words: "the code itself", part: 1},
};

// Where all is from one table there is nothing to say.
/** @type {(binary: Binary) => boolean} */
export const hasSeveral = ({sources}) => sources.length > 1;

/** @type {(binary: Binary, index: number) => Source} */
const sourceOf = ({source, sources}, index) => sources[source[index]];

/** @type {(source: Source) => string} */
const words = ({kind, name}) => (kind === "code" ? KINDS.code.words : `${KINDS[kind].words}, ${name}`);

// Where the rules of a function are from.
/** @type {(binary: Binary, index: number) => string} */
export const sourceWords = (binary, index) => words(sourceOf(binary, index));

// The name of the table that a function is in.
/** @type {(binary: Binary, index: number) => string} */
export const tableName = (binary, index) => sourceOf(binary, index).name;

/** @type {(kind: string) => HTMLElement} */
function swatch(kind) {
  const element = html("i", {class: "swatch"});
  element.style.background = `var(--${KINDS[kind].colour})`;
  return element;
}

// What stands beside a function's name.
/** @type {(binary: Binary, index: number) => HTMLElement} */
export function sourceMark(binary, index) {
  const source = sourceOf(binary, index);
  return html("span", {class: "quiet source", title: `Rules from ${words(source)}`}, swatch(source.kind), source.kind);
}

// What the marks mean, and how much is from each table.
/** @type {(binary: Binary) => HTMLElement | ""} */
export function sourceLegend(binary) {
  if (!hasSeveral(binary)) return "";
  const items = binary.sources.map((source) => {
    const size = `${counted(source.functions, "function")}, ${bytes(source.codeBytes)}`;
    return html("li", {}, swatch(source.kind), html("b", {}, source.kind), `: ${words(source)} (${size})`);
  });
  return html("ul", {class: "legend sources", "aria-label": "Where rules are from"}, items);
}

// Lists of what is from one table.
/** @type {(binary: Binary) => Choice[]} */
export const sourceChoices = (binary) =>
  hasSeveral(binary)
    ? binary.sources.map(({kind}, number) => [
        `source-${kind}`,
        `Rules from ${KINDS[kind].words}`,
        (index) => binary.source[index] === number,
      ])
    : [];

/** @type {(binary: Binary) => [colour: string, words: string][]} */
export const sourceEntries = (binary) =>
  hasSeveral(binary)
    ? binary.sources.map(({kind}) => [`var(--${KINDS[kind].colour})`, `from ${KINDS[kind].words}`])
    : [];

// A bar for each stretch of functions from one table; kinds have heights of their own.
/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawSources(line, pen, paint, {y, height}) {
  const {binary, from, to} = line;
  let index = Math.max(0, binary.before(from));
  while (index < binary.length && binary.x[index] < to) {
    const number = binary.source[index],
      left = line.px(binary.x[index]);
    let right = line.px(binary.xEnd[index]);
    for (index++; index < binary.length && binary.source[index] === number; index++) {
      if (line.px(binary.x[index]) > right + 1) break;
      right = line.px(binary.xEnd[index]);
    }
    const {colour, part} = KINDS[binary.sources[number].kind],
      high = Math.round(height * part);
    pen.fillStyle = paint[colour];
    pen.fillRect(left, y + Math.floor((height - high) / 2), Math.max(1, right - left), high);
  }
}
