// What the tables of a file take, and what SFrame would: as bars, and as a table.
/** @import {Binary} from "./binary_data.js" */
/** @import {Head} from "../pages/common.js" */
/** @import {SizeParts} from "./types.js" */
import {bytes, count, folded, html, legendItem, percent, scrollBox, tableHead} from "../pages/common.js";
import {svg} from "../pages/svg.js";
import {PART_COLOURS} from "./size_colours.js";

// The parts of a section, and what they are called.
/** @type {[name: keyof SizeParts, words: string][]} */
const PARTS = [
  ["header", "header"],
  ["index", "index"],
  ["padding", "padding in the index"],
  ["attributes", "attributes"],
  ["starts", "row starts"],
  ["info", "info bytes"],
  ["words", "words"],
  ["other", "unused"],
];
const BASE_COLOURS = ["--eh", "--c8"];

/**
 * @typedef {object} Baseline
 * @property {string} name
 * @property {[name: string, size: number][]} parts
 * @property {number} total
 * @property {number} compared The same, if all functions are from it; else 0.
 */
/** @typedef {[words: string, size: number, colour: string]} BarPart */
/** @typedef {{name: string, total: number | null, parts: BarPart[], impossible?: string}} Bar */

// What SFrame is compared with.
/** @type {(binary: Binary) => Baseline} */
export function baseline({frames, sources, tables}) {
  const parts = Object.entries(frames).filter(([, size]) => size),
    total = parts.reduce((sum, [, size]) => sum + size, 0);
  return {
    name: parts.map(([name]) => name).join(" + ") || tables,
    parts,
    total,
    compared: sources.every(({kind}) => kind === "cfi") ? total : 0,
  };
}

// Each table as a bar: its name, its bytes, what they are for, and why there is none.
/** @type {(binary: Binary, base: Baseline) => HTMLElement[]} */
export function sizes(binary, base) {
  const bars = barsOf(binary, base);
  const most = Math.max(1, ...bars.map(({total}) => total ?? 0));
  const used = new Map(bars.flatMap(({parts}) => parts.map(([words, , colour]) => [words, colour])));
  return [
    html("h3", {}, "Size of the tables"),
    ...bars.map((bar) => sizeBar(bar, most, bar.name === base.name ? 0 : base.compared)),
    html(
      "ul",
      {class: "legend", "aria-label": "What the bytes are used for"},
      [...used].map(([words, colour]) => legendItem(`var(${colour})`, words)),
    ),
    sizeTable(
      bars.filter(({total}) => total !== null),
      [...used.keys()],
    ),
  ];
}

/** @type {(binary: Binary, base: Baseline) => Bar[]} */
function barsOf({versions, sframe}, base) {
  /** @type {Bar[]} */
  const bars = [];
  if (base.total) {
    /** @type {BarPart[]} */
    const parts = base.parts.map(([name, size], place) => [name, size, BASE_COLOURS[place]]);
    bars.push({name: base.name, total: base.total, parts});
  }
  for (const {version, impossible, bytes: total, parts} of versions) {
    const name = `SFrame V${version}`;
    bars.push(impossible ? {name, total: null, parts: [], impossible} : {name, total, parts: partList(parts)});
  }
  if (sframe) bars.push({name: `Existing ${sframe.name}`, total: sframe.bytes, parts: partList(sframe.parts)});
  return bars;
}

/** @type {(parts: SizeParts) => BarPart[]} */
const partList = (parts) =>
  PARTS.filter(([name]) => parts[name]).map(([name, words]) => [words, parts[name], PART_COLOURS[name]]);

/** @type {(bar: Bar, most: number, base: number) => HTMLElement} */
function sizeBar({name, total, parts, impossible}, most, base) {
  const share = base && total !== null ? html("span", {class: "quiet"}, ` ${percent(total / base)}`) : null;
  return html(
    "div",
    {class: "size"},
    html("span", {class: "label"}, name),
    impossible ? html("span", {class: "quiet"}, impossible) : stacked(name, parts, most),
    html("span", {class: "amount number"}, total === null ? "" : bytes(total), share),
  );
}

/** @type {(name: string, parts: BarPart[], most: number) => SVGElement} */
function stacked(name, parts, most) {
  let x = 0;
  const rects = parts.map(([, size, colour]) => {
    const rect = svg("rect", {x: `${(100 * x) / most}%`, y: 0, width: `${(100 * size) / most}%`, height: "100%"});
    rect.style.fill = `var(${colour})`;
    x += size;
    return rect;
  });
  const words = parts.map(([part, size]) => `${part} ${bytes(size)}`).join(", ");
  return svg("svg", {class: "sizebar", role: "img", "aria-label": `${name}: ${words}`}, rects);
}

/** @type {(bars: Bar[], words: string[]) => HTMLElement} */
function sizeTable(bars, words) {
  /** @type {(title: string, values: (number | null | undefined)[]) => HTMLElement} */
  const row = (title, values) => {
    const cells = values.map((value) => html("td", {class: "right"}, count(value)));
    return html("tr", {}, html("th", {scope: "row"}, title), cells);
  };
  const rows = words.map((word) =>
    row(
      word,
      bars.map(({parts}) => parts.find(([name]) => name === word)?.[1]),
    ),
  );
  const sum = row(
    "together",
    bars.map(({total}) => total),
  );
  /** @type {Head[]} */
  const heads = [["Bytes", false], ...bars.map(({name}) => /** @type {Head} */ ([name, true]))];
  const table = html("table", {}, tableHead(heads), html("tbody", {}, rows, sum));
  return folded("As a table", scrollBox("Bytes of the tables", table));
}
