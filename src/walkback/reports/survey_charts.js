// Charts of shares: how they are spread, and parts of a whole.
/** @import {Chart, Row} from "./types.js" */
import {counted, known, percent, ratio} from "../pages/common.js";
import {svg} from "../pages/svg.js";
import {partColour} from "./size_colours.js";
import {
  ABOVE_ONE,
  AXIS_HEIGHT,
  BASELINE,
  TICK_LABEL,
  axisTitle,
  canvas,
  filled,
  label,
  line,
  scaleTo,
  textWidth,
  tickWords,
  titled,
} from "./survey_drawing.js";
import {columnOf, inWords} from "./survey_words.js";

const BIN = 0.05;
const HISTOGRAM = {
  left: 38,
  right: 8,
  top: 8,
  height: 150,
  labelGap: 6,
  worseGap: 5,
  worseBaseline: 11,
  ticks: {wide: 0.5, narrow: 0.25, wideFrom: 1.5}, // Steps of the scale, and which end it has for the wide ones.
};
const HISTOGRAM_BOTTOM = HISTOGRAM.top + HISTOGRAM.height;
const ROUND = 1e-9; // What adding up steps may miss.

// How many files are in which range, all ranges alike but for the last, which may have no end.
class Histogram {
  /** @param {Chart} figure @param {number} width @param {string} colour @param {number} most @param {number} lastBin */
  constructor(figure, width, colour, most, lastBin) {
    this.figure = figure;
    this.width = width;
    this.right = width - HISTOGRAM.right;
    this.colour = colour;
    this.lastBin = lastBin;
    this.end = lastBin + BIN;
    this.scale = scaleTo(most, false);
    this.from = columnOf(figure, figure.drawing.label);
    this.value = columnOf(figure, figure.drawing.values[0]);
    this.files = columnOf(figure, "files");
    this.tickWords = tickWords[figure.columns[this.from].unit];
  }
  /** @type {(at: number) => number} */
  x(at) {
    return HISTOGRAM.left + (at / this.end) * (this.right - HISTOGRAM.left);
  }
  /** @type {(share: number) => number} */
  y(share) {
    return HISTOGRAM_BOTTOM - (share / this.scale.end) * HISTOGRAM.height;
  }
  // Lines and numbers of the scale at the left.
  grid() {
    const {left, labelGap} = HISTOGRAM;
    return this.scale.ticks.flatMap((tick) => [
      line(left, this.y(tick), this.right, this.y(tick), "grid"),
      label(left - labelGap, this.y(tick) + BASELINE, tickWords.share(tick), "end"),
    ]);
  }
  // What is larger than before, beyond 1.
  worse() {
    const one = this.x(1),
      room = this.x(this.end) - one,
      words = "larger";
    const {top, height, worseGap, worseBaseline} = HISTOGRAM;
    return [
      svg("rect", {x: one, y: top, width: room, height, class: "worse"}),
      line(one, top - ABOVE_ONE, one, HISTOGRAM_BOTTOM, "one"),
      ...(textWidth(words) < room ? [label(one + worseGap, top + worseBaseline, words)] : []),
    ];
  }
  /** @type {(row: Row) => SVGElement} */
  bar(row) {
    const from = row[this.from],
      y = this.y(row[this.value]);
    const width = Math.max(1, this.x(BIN) - this.x(0) - 1);
    const bar = svg("rect", {x: this.x(from) + 0.5, y, width, height: HISTOGRAM_BOTTOM - y});
    const hasNoEnd = from >= this.lastBin && this.figure.drawing.one;
    const range = hasNoEnd
      ? `from ${this.tickWords(from)} on`
      : `${this.tickWords(from)} to ${this.tickWords(from + BIN)}`;
    const words = `${range}: ${percent(row[this.value])}, ${counted(row[this.files], "file")}`;
    return titled(filled(bar, this.colour), words);
  }
  // The scale below.
  axis() {
    const {drawing} = this.figure,
      {left, ticks} = HISTOGRAM;
    const marks = [line(left, HISTOGRAM_BOTTOM, this.right, HISTOGRAM_BOTTOM, "axis")];
    const step = this.end > ticks.wideFrom ? ticks.wide : ticks.narrow;
    for (let at = 0; at <= this.lastBin + ROUND; at += step) {
      const more = drawing.one && at >= this.lastBin - ROUND ? "+" : "";
      marks.push(label(this.x(at), HISTOGRAM_BOTTOM + TICK_LABEL, this.tickWords(at) + more, "middle"));
    }
    marks.push(axisTitle(drawing.axis, left, HISTOGRAM_BOTTOM, this.width));
    return marks;
  }
  /** @type {(rows: Row[]) => SVGElement} */
  drawn(rows) {
    const marks = [
      ...this.grid(),
      ...(this.figure.drawing.one ? this.worse() : []),
      ...rows.map((row) => this.bar(row)),
      ...this.axis(),
    ];
    return canvas(this.figure, this.width, HISTOGRAM_BOTTOM + AXIS_HEIGHT, ...marks);
  }
}

/** @type {(figure: Chart, rows: Row[], width: number, colour: string, most: number, lastBin: number) => SVGElement} */
export const histogram = (figure, rows, width, colour, most, lastBin) =>
  new Histogram(figure, width, colour, most, lastBin).drawn(rows);

const STACK = {top: 4, height: 34, gap: 1, wordsSpace: 4, below: 10, belowOne: 28, oneLength: 8, oneBaseline: 22};

// Parts of a whole, one behind the other.
/** @type {(figure: Chart, rows: Row[], width: number, order: any[], most: number) => SVGElement} */
export function stack(figure, rows, width, order, most) {
  const {drawing} = figure,
    value = columnOf(figure, drawing.values[0]);
  /** @type {(at: number) => number} */
  const place = (at) => (at / most) * (width - 2 * STACK.gap) + STACK.gap;
  /** @type {SVGElement[]} */
  const marks = [];
  let at = 0;
  for (const row of rows) {
    const from = place(at);
    at += row[value] ?? 0;
    marks.push(...stackPart(figure, row, order, from, place(at), place(1)));
  }
  if (drawing.one && most >= 1) marks.push(...stackOne(place(1), width));
  return canvas(figure, width, STACK.height + (drawing.one ? STACK.belowOne : STACK.below), ...marks);
}

// A part of a stack, and its share in it if there is room.
/**
 * @type {(
 *   figure: Chart, row: Row, order: any[], from: number, to: number, one: number
 * ) => SVGElement[]}
 */
function stackPart(figure, row, order, from, to, one) {
  const {columns, drawing} = figure,
    part = columnOf(figure, drawing.label),
    value = columnOf(figure, drawing.values[0]);
  const colour = partColour(row[part], order.indexOf(row[part]));
  const words = `${inWords(row[part], columns[part])}: ${inWords(row[value], columns[value])}`;
  const width = Math.max(0, to - from - STACK.gap);
  const box = svg("rect", {x: from, y: STACK.top, width, height: STACK.height, rx: 2});
  /** @type {SVGElement[]} */
  const marks = [titled(filled(box, colour), words)];
  const isShare = columns[value].unit === "share";
  const short = isShare ? tickWords.share(Number(row[value].toPrecision(2))) : ratio(row[value]);
  const half = textWidth(short) / 2 + STACK.wordsSpace,
    middle = drawing.one ? besideOne(from, to, half, one) : (from + to) / 2;
  if (2 * half < to - from && known(middle)) {
    const y = STACK.top + STACK.height / 2 + BASELINE;
    marks.push(label(middle, y, short, "middle", `inside on${colour}`));
  }
  return marks;
}

// Where the middle of words is that do not stand on the line at 1.
/** @type {(from: number, to: number, half: number, one: number) => number | undefined} */
const besideOne = (from, to, half, one) =>
  [(from + to) / 2, one - half, one + half].find(
    (x) => Math.abs(x - one) >= half && x - half >= from && x + half <= to,
  );

/** @type {(one: number, width: number) => SVGElement[]} */
function stackOne(one, width) {
  const words = "as large as .eh_frame and .eh_frame_hdr",
    half = textWidth(words) / 2;
  const middle = Math.min(Math.max(one, half), width - half);
  return [
    line(one, 0, one, STACK.height + STACK.oneLength, "one"),
    label(middle, STACK.height + STACK.oneBaseline, words, "middle"),
  ];
}
