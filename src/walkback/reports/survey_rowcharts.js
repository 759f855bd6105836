// Charts of rows below each other: bars, and dots on lines.
/** @import {Chart, Row, Unit} from "./types.js" */
/** @import {Scale} from "./survey_drawing.js" */
import {counted, known, ratio} from "../pages/common.js";
import {svg} from "../pages/svg.js";
import {
  ABOVE_ONE,
  AXIS_HEIGHT,
  BASELINE,
  axis,
  canvas,
  dot,
  filled,
  fitting,
  label,
  line,
  scaleTo,
  textWidth,
  titled,
} from "./survey_drawing.js";
import {columnOf, inWords} from "./survey_words.js";

/** @type {Record<string, [title: string, colour: string]>} */
export const SERIES = {v1: ["Version 1", "--v1"], v2: ["Version 2", "--v2"], v3: ["Version 3", "--v3"]};

// Where the line at 1 is drawn, the scale goes on a little behind it.
const BEHIND_ONE = 1.05;
const NAME_SPACE = 12; // Between names of rows and what is drawn.
const NAME_GAP = 10;
const NAME_HEIGHT = 18; // Of names that stand above what is drawn.
const MOST_BESIDE = 0.3; // Names that take a larger part of the width stand above.

/** @typedef {{names: string[], beside: boolean, left: number, above: number}} RowNames */

// What rows are called, and whether that stands beside what is drawn or above it: in all panels of a figure alike.
/** @type {(figure: Chart, rows: Row[], width: number) => RowNames} */
function rowNames(figure, rows, width) {
  const column = columnOf(figure, figure.drawing.label);
  /** @type {(row: Row) => string} */
  const nameOf = (row) => inWords(row[column], figure.columns[column]);
  const widest = Math.max(0, ...figure.rows.map((row) => textWidth(nameOf(row)))) + NAME_SPACE;
  const beside = widest <= width * MOST_BESIDE;
  return {names: rows.map(nameOf), beside, left: beside ? Math.ceil(widest) : 0, above: beside ? 0 : NAME_HEIGHT};
}

// Rows below each other, all along one scale.
class RowChart {
  /** @param {Chart} figure @param {Row[]} rows @param {number} width */
  constructor(figure, rows, width) {
    this.figure = figure;
    this.rows = rows;
    this.width = width;
    this.names = rowNames(figure, rows, width);
    this.filesColumn = columnOf(figure, "files");
    // Set by each kind: the scale, its unit, what is free to its right, and how high a row and what is below all are.
    /** @type {Scale} */
    this.scale = {end: 1, ticks: []};
    /** @type {Unit} */
    this.unit = "ratio";
    this.room = 0;
    this.rowHeight = 0;
    this.below = 0;
  }
  /** @type {(value: number) => number} */
  place(value) {
    const {left} = this.names;
    return left + (value / this.scale.end) * (this.width - left - this.room);
  }
  // The name of a row, where it stands if it is beside what is drawn, and if it is above.
  /** @type {(number: number, besideY: number, aboveY: number, width: number) => SVGElement} */
  rowName(number, besideY, aboveY, width) {
    const {names, beside, left} = this.names,
      name = names[number];
    const text = beside
      ? label(left - NAME_GAP, besideY, name, "end", "strong")
      : label(0, aboveY, fitting(name, width), "start", "strong");
    return titled(text, name);
  }
  /** @type {(row: Row, number: number) => SVGElement[]} */
  rowMarks() {
    return [];
  }
  drawn() {
    const {figure, width, scale, unit} = this,
      bottom = this.rows.length * this.rowHeight + this.below;
    const below = axis(figure, scale, (value) => this.place(value), width, bottom, unit);
    const marks = this.rows.flatMap((row, number) => this.rowMarks(row, number));
    return canvas(figure, width, bottom + AXIS_HEIGHT, ...below, ...marks);
  }
}

const BAR = {
  single: {thick: 16, gap: 10},
  several: {thick: 11, gap: 14},
  top: 6,
  below: 4,
  leastWidth: 1.5, // Of what is more than nothing.
  wordsGap: 6,
  wordsSpace: 14, // Around the words at the end of the longest bar.
  mostRoom: 0.7, // How much of the width words may have.
  nameBaseline: 12,
};

// Each row has a bar for each of some columns.
class BarChart extends RowChart {
  /** @param {Chart} figure @param {Row[]} rows @param {number} width @param {string[]} colours @param {number} most */
  constructor(figure, rows, width, colours, most) {
    super(figure, rows, width);
    const {drawing, columns} = figure;
    this.bars = barColumns(figure, colours);
    this.several = this.bars.length > 1;
    const {thick, gap} = this.several ? BAR.several : BAR.single;
    this.thick = thick;
    this.rowHeight = this.names.above + this.bars.length * (thick + 1) + gap;
    this.below = BAR.below;
    this.unit = columns[columnOf(figure, drawing.values[0])].unit;
    this.scale = scaleTo(Math.max(most, drawing.one ? BEHIND_ONE : 0), this.unit === "count");
    const widths = figure.rows.flatMap((row) => this.bars.map(({column}) => textWidth(this.words(row, column))));
    this.room = Math.min(Math.max(...widths) + BAR.wordsSpace, BAR.mostRoom * width);
  }
  // What a bar says.
  /** @type {(row: Row, column: number) => string} */
  words(row, column) {
    const {figure, filesColumn} = this;
    const isForAll = known(row[column]) || !this.several;
    const value = isForAll ? inWords(row[column], figure.columns[column]) : "not supported by all files";
    // Versions may be counted over different files.
    const counts = figure.rows.map((other) => other[filesColumn]);
    const saysFiles = figure.drawing.label === "version" && counts.some((files) => files !== counts[0]);
    return saysFiles ? `${value} in ${counted(row[filesColumn], "file")}` : value;
  }
  /** @type {(row: Row, number: number) => SVGElement[]} */
  rowMarks(row, number) {
    const top = number * this.rowHeight + BAR.top,
      each = this.thick + 1;
    const middle = top + (this.bars.length * each) / 2 + BASELINE;
    const name = this.rowName(number, middle, top + BAR.nameBaseline, this.width);
    const bars = this.bars.flatMap(({column, colour}, place) => {
      const y = top + this.names.above + place * each;
      return this.bar(row, number, column, colour, y);
    });
    return [name, ...bars];
  }
  /** @type {(row: Row, number: number, column: number, colour: string, y: number) => SVGElement[]} */
  bar(row, number, column, colour, y) {
    const {left, names} = this.names,
      value = row[column],
      words = this.words(row, column);
    const end = known(value) ? this.place(value) : left;
    const least = known(value) && value > 0 ? BAR.leastWidth : 0;
    const bar = svg("rect", {x: left, y, width: Math.max(end - left, least), height: this.thick, rx: 2});
    const name = this.several ? `${names[number]}, ${this.figure.columns[column].title}` : names[number];
    const x = this.wordsStart(end, words);
    return [
      titled(filled(bar, colour), `${name}: ${words}`),
      label(x, y + this.thick / 2 + BASELINE, words, "start", this.several ? "small" : ""),
    ];
  }
  // Words do not stand on the line at 1.
  /** @type {(end: number, words: string) => number} */
  wordsStart(end, words) {
    const one = this.place(1);
    const isCrossed = this.figure.drawing.one && end <= one && end + BAR.wordsGap + textWidth(words) > one - ABOVE_ONE;
    return (isCrossed ? one : end) + BAR.wordsGap;
  }
}

// The columns that have bars: those with any number, or all if none has one.
/** @type {(figure: Chart, colours: string[]) => {column: number, colour: string}[]} */
function barColumns(figure, colours) {
  const all = figure.drawing.values.map((name, number) => ({column: columnOf(figure, name), colour: colours[number]}));
  const withNumbers = all.filter(({column}) => figure.rows.some((row) => known(row[column])));
  return withNumbers.length ? withNumbers : all;
}

/** @type {(figure: Chart, rows: Row[], width: number, colours: string[], most: number) => SVGElement} */
export const bars = (figure, rows, width, colours, most) => new BarChart(figure, rows, width, colours, most).drawn();

const DOTS = {
  narrow: 480, // Narrower charts have no numbers of files to the right.
  room: {narrow: 12, wide: 96},
  rowHeight: 28,
  middle: 18, // From the top of a row down to its line.
  below: 6,
  nameAbove: 14,
  filesWidth: 80,
};

// Each row has a dot for each version on a line, and the span of most files behind them.
class DotChart extends RowChart {
  /** @param {Chart} figure @param {Row[]} rows @param {number} width */
  constructor(figure, rows, width) {
    super(figure, rows, width);
    const {drawing} = figure;
    const [low, high] = (drawing.span ?? []).map((name) => columnOf(figure, name));
    this.low = low;
    this.high = high;
    this.wide = width >= DOTS.narrow;
    this.room = this.wide ? DOTS.room.wide : DOTS.room.narrow;
    this.rowHeight = DOTS.rowHeight + this.names.above;
    this.below = DOTS.below;
    const drawnColumns = [...drawing.values.map((name) => columnOf(figure, name)), this.high];
    const values = rows.flatMap((row) => drawnColumns.map((column) => row[column] ?? 0));
    this.scale = scaleTo(Math.max(BEHIND_ONE, ...values), false);
  }
  /** @type {(row: Row, number: number) => SVGElement[]} */
  rowMarks(row, number) {
    const {above, left, beside} = this.names;
    const y = number * this.rowHeight + DOTS.middle + above,
      aboveY = y - DOTS.nameAbove;
    const marks = [this.rowName(number, y + BASELINE, aboveY, this.width - DOTS.filesWidth)];
    const files = counted(row[this.filesColumn], "file");
    if (this.wide) marks.push(label(this.width, y + BASELINE, files, "end"));
    else if (!beside) marks.push(label(this.width, aboveY, files, "end"));
    marks.push(line(left, y, this.width - this.room, y, "grid"));
    marks.push(...this.span(row, number, y), ...this.dots(row, number, y));
    return marks;
  }
  /** @type {(row: Row, number: number, y: number) => SVGElement[]} */
  span(row, number, y) {
    const low = row[this.low],
      high = row[this.high];
    if (!known(low) || !known(high)) return [];
    const words = `four fifths of the files from ${ratio(low)} to ${ratio(high)} in version 3`;
    return [titled(line(this.place(low), y, this.place(high), y, "span"), `${this.names.names[number]}: ${words}`)];
  }
  /** @type {(row: Row, number: number, y: number) => SVGElement[]} */
  dots(row, number, y) {
    return this.figure.drawing.values.flatMap((name) => {
      const value = row[columnOf(this.figure, name)],
        [title, colour] = SERIES[name];
      if (!known(value)) return [];
      const words = `${this.names.names[number]}, ${title.toLowerCase()}: ${ratio(value)}`;
      return [titled(filled(dot[name](this.place(value), y), colour), words)];
    });
  }
}

/** @type {(figure: Chart, rows: Row[], width: number) => SVGElement} */
export const dots = (figure, rows, width) => new DotChart(figure, rows, width).drawn();
