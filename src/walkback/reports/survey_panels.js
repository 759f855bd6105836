// Draws a figure into an element: a panel for each of its groups, drawn again whenever there is another width.
/** @import {Chart, Row} from "./types.js" */
/** @import {Entry} from "./survey_drawing.js" */
import {addTo, count, counted, html, known} from "../pages/common.js";
import {partColour} from "./size_colours.js";
import {histogram, stack} from "./survey_charts.js";
import {dot, legend} from "./survey_drawing.js";
import {SERIES, bars, dots} from "./survey_rowcharts.js";
import {columnOf, inWords} from "./survey_words.js";

const MOST_BARS = 12;
const LAST_BIN = {ratios: 2, shares: 0.95};
const PAPER = {whole: 680, third: 280}; // How wide charts are on paper, in pixels.
const PLAIN_COLOURS = {single: ["--v3"], several: ["--c2", "--c3", "--c4"]};
const PANEL_COLOUR = "--c2";
const VERSIONS = ["1", "2", "3"];

/** @typedef {{key: any, rows: Row[], place: HTMLElement}} Panel */

// What charts do before they are printed and after.
/** @type {WeakMap<Element, (on: boolean) => void>} */
const printing = new WeakMap();
/** @type {(on: boolean) => void} */
export const printCharts = (on) => document.querySelectorAll(".chart").forEach((chart) => printing.get(chart)?.(on));

/** @type {(figure: Chart, holder: HTMLElement) => void} */
export function drawInto(figure, holder) {
  new Panels(figure, holder).listen();
}

class Panels {
  /** @param {Chart} figure @param {HTMLElement} holder */
  constructor(figure, holder) {
    const {drawing, rows} = figure;
    this.figure = figure;
    this.holder = holder;
    this.kind = drawing.kind;
    this.label = columnOf(figure, drawing.label);
    this.values = drawing.values.map((name) => columnOf(figure, name));
    const plain = drawing.values.length > 1 ? PLAIN_COLOURS.several : PLAIN_COLOURS.single;
    this.colours = drawing.values.map((name, number) => SERIES[name]?.[1] ?? plain[number]);
    // The parts of a stack, which have the same colours in all panels.
    this.order = this.kind === "stack" ? [...new Set(rows.map((row) => row[this.label]))] : [];
    this.panels = this.grouped();
    this.most = this.largest();
    this.width = 0;
    for (const panel of this.panels) holder.append(this.panelElement(panel));
    if (this.kind === "histogram" && this.panels.length > 1) holder.classList.add("multiples");
    const entries = this.legendEntries();
    if (entries.length) holder.before(legend(entries));
  }

  // The rows by panel.
  /** @type {() => Panel[]} */
  grouped() {
    const {drawing, rows} = this.figure;
    /** @type {Map<any, Row[]>} */
    const groups = new Map();
    const column = columnOf(this.figure, drawing.panel);
    for (const row of rows) addTo(groups, drawing.panel ? row[column] : null, row);
    return [...groups].map(([key, group]) => ({key, rows: group, place: html("div", {class: "drawing"})}));
  }

  // The largest value that is drawn in any panel.
  largest() {
    const [first] = this.values;
    if (this.kind !== "stack")
      return Math.max(...this.figure.rows.flatMap((row) => this.values.map((column) => row[column] ?? 0)));
    const wholes = this.panels.map(({rows}) => sumOf(rows, first));
    return Math.max(...wholes, this.figure.drawing.one ? 1 : 0);
  }

  /** @type {(panel: Panel) => HTMLElement} */
  panelElement({key, rows, place}) {
    const isHistogram = this.kind === "histogram",
      more = rows.length - MOST_BARS;
    return html(
      "div",
      {class: isHistogram ? "panel-narrow" : "panel-wide"},
      key !== null && this.heading(key, rows),
      place,
      this.kind === "bars" && more > 0 && html("p", {class: "quiet sentence"}, `The table has ${count(more)} more.`),
    );
  }
  /** @type {(key: any, rows: Row[]) => HTMLElement} */
  heading(key, rows) {
    const column = this.figure.columns[columnOf(this.figure, this.figure.drawing.panel)];
    const name = html("bdi", {}, inWords(key, column));
    if (this.kind !== "histogram") return html("h4", {}, name);
    const files = sumOf(rows, columnOf(this.figure, "files"));
    return html("h4", {}, name, html("span", {class: "quiet"}, ` ${counted(files, "file")}`));
  }

  /** @type {() => Entry[]} */
  legendEntries() {
    const {columns, drawing, rows} = this.figure;
    if (this.kind === "stack")
      return this.order.map((part, number) => [inWords(part, columns[this.label]), partColour(part, number)]);
    if (drawing.values.length < 2) return [];
    return drawing.values.flatMap((name, number) => {
      const column = this.values[number];
      if (!rows.some((row) => known(row[column]))) return [];
      /** @type {Entry} */
      const entry = [columns[column].title, this.colours[number], this.kind === "dots" ? dot[name](0, 0) : null];
      return [entry];
    });
  }

  /** @type {(panel: Panel, width: number) => SVGElement} */
  drawn({key, rows}, width) {
    const {figure, most} = this,
      {one} = figure.drawing;
    switch (this.kind) {
      case "dots":
        return dots(figure, rows, width);
      case "histogram":
        return histogram(figure, rows, width, panelColour(key), most, one ? LAST_BIN.ratios : LAST_BIN.shares);
      case "stack":
        return stack(figure, rows, width, this.order, most);
      default:
        return this.drawnBars(key, rows, width);
    }
  }
  /** @type {(key: any, rows: Row[], width: number) => SVGElement} */
  drawnBars(key, rows, width) {
    const {figure, most} = this,
      {drawing} = figure;
    const chart = bars(
      figure,
      rows.slice(0, MOST_BARS),
      width,
      drawing.panel ? [panelColour(key)] : this.colours,
      most,
    );
    if (drawing.label === "version")
      chart.querySelectorAll("rect").forEach((bar, place) => {
        bar.style.fill = `var(--v${rows[place][this.label]})`;
      });
    return chart;
  }

  /** @type {(width?: number) => void} */
  draw(width) {
    for (const panel of this.panels) panel.place.replaceChildren(this.drawn(panel, width ?? panel.place.clientWidth));
  }
  redraw() {
    const width = this.panels[0].place.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.draw();
  }
  /** @type {(on: boolean) => void} */
  print(on) {
    this.width = 0;
    if (on) this.draw(this.holder.classList.contains("multiples") ? PAPER.third : PAPER.whole);
    else this.redraw();
  }
  listen() {
    printing.set(this.holder, (on) => this.print(on));
    new ResizeObserver(() => this.redraw()).observe(this.holder);
  }
}

/** @type {(rows: Row[], column: number) => number} */
const sumOf = (rows, column) => rows.reduce((sum, row) => sum + (row[column] ?? 0), 0);
// Panels of versions have their colours.
/** @type {(key: unknown) => string} */
const panelColour = (key) => (VERSIONS.includes(String(key)) ? `--v${key}` : PANEL_COLOUR);
