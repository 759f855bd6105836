// Charts, drawn for the width that there is. Each has its numbers in a table beside it as well.
/** @import {Children} from "../pages/types.js" */
/** @import {Chart, Row, Unit} from "./types.js" */
import {bytes, count, counted, html, known, percent, ratio, svg} from "../pages/common.js";
import {inWords} from "./survey_words.js";

/** @type {Record<string, [title: string, colour: string]>} */
export const SERIES = {v1: ["Version 1", "--v1"], v2: ["Version 2", "--v2"], v3: ["Version 3", "--v3"]};
export const PARTS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"];

/** @typedef {{end: number, ticks: number[]}} Scale */

const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
let font = "";
/** @type {(text: string) => number} */
function textWidth(text) {
  font ||= `12px ${getComputedStyle(document.body).fontFamily}`;
  pen.font = font;
  return pen.measureText(text).width;
}
// What of a text goes into some pixels; the end of a name says more than its beginning.
/** @type {(text: string, width: number, fromEnd?: boolean) => string} */
function fitting(text, width, fromEnd = false) {
  if (textWidth(text) <= width) return text;
  let low = 0,
    high = text.length;
  /** @type {(letters: number) => string} */
  const cut = (letters) => (fromEnd ? `\u2026${text.slice(text.length - letters)}` : `${text.slice(0, letters)}\u2026`);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(cut(middle)) <= width) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

// A scale from 0 on that ends at a round number, with some five steps.
/** @type {(most: number, whole: boolean) => Scale} */
function scaleTo(most, whole) {
  const rough = Math.max(most, 1e-12) / 5,
    size = 10 ** Math.floor(Math.log10(rough));
  let step = ([1, 2, 2.5, 5, 10].find((one) => one * size >= rough) ?? 10) * size;
  if (whole) step = Math.max(1, Math.ceil(step));
  const end = step * Math.ceil(most / step - 1e-9) || step,
    ticks = [];
  for (let place = 0; place <= end / step + 1e-6; place++) ticks.push(place * step);
  return {end, ticks};
}
/** @type {Record<string, (value: number) => string>} */
const tickWords = {
  share: (value) => `${Number((100 * value).toPrecision(3))} %`,
  ratio: (value) => String(Number(value.toPrecision(3))),
  count: (value) => (value >= 10000 ? `${Number((value / 1000).toPrecision(3)).toLocaleString("en")}k` : count(value)),
  bytes: (value) => bytes(Math.round(value)),
};

// A drawing with its title and description for those who listen.
let drawings = 0;
/** @type {(width: number, height: number, title: string, words: string, ...children: Children[]) => SVGSVGElement} */
function canvas(width, height, title, description, ...children) {
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
    svg("desc", {id: `${id}-words`}, description),
    ...children,
  );
}
/** @type {(x: number, y: number, text: string, anchor?: string, kind?: string) => SVGElement} */
const label = (x, y, text, anchor = "start", kind = "") =>
  svg("text", {x, y, "text-anchor": anchor, class: kind || null}, text);
/** @type {(x1: number, y1: number, x2: number, y2: number, kind: string) => SVGElement} */
const line = (x1, y1, x2, y2, kind) => svg("line", {x1, y1, x2, y2, class: kind});
/** @type {<T extends SVGElement>(element: T, text: string) => T} */
const titled = (element, text) => {
  element.append(svg("title", {}, text));
  return element;
};

/** @type {(entries: [words: string, colour: string, shape?: SVGElement | null][]) => HTMLElement} */
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
/** @type {Record<string, (x: number, y: number) => SVGElement>} */
export const dot = {
  v1: (x, y) => svg("rect", {x: x - 4, y: y - 4, width: 8, height: 8}),
  v2: (x, y) => svg("path", {d: `M${x} ${y - 5.5}L${x + 5.5} ${y}L${x} ${y + 5.5}L${x - 5.5} ${y}Z`}),
  v3: (x, y) => svg("circle", {cx: x, cy: y, r: 5}),
};
/** @type {<T extends SVGElement>(element: T, colour: string) => T} */
const filled = (element, colour) => {
  element.style.fill = `var(${colour})`;
  return element;
};

// The scale below, with a line at each step and at 1 where that means something.
/**
 * @param {Scale} scale
 * @param {(value: number) => number} place
 * @param {number} top
 * @param {number} bottom
 * @param {Unit} unit
 * @param {string} words
 * @param {boolean} one
 * @param {number} width
 */
function axis(scale, place, top, bottom, unit, words, one, width) {
  const found = [];
  let right = -Infinity;
  for (const tick of scale.ticks) {
    const x = place(tick),
      text = tickWords[unit](tick),
      half = textWidth(text) / 2;
    found.push(line(x, top, x, bottom, "grid"));
    if (x - half < right + 8) continue;
    right = Math.min(x + half, width);
    found.push(label(Math.min(x, width - half), bottom + 16, text, "middle"));
  }
  if (one && scale.end >= 1) found.push(line(place(1), top - 4, place(1), bottom, "one"));
  found.push(line(place(0), top, place(0), bottom, "axis"));
  found.push(label(place(0), bottom + 33, fitting(words, width - place(0))));
  return found;
}
const AXIS = 40;

// What rows are called, and whether that stands beside what is drawn or above it: in all panels of a figure alike.
/** @param {Chart} figure @param {Row[]} rows @param {number} width */
function labels(figure, rows, width) {
  const column = figure.columns.findIndex((one) => one.name === figure.drawing.label);
  /** @type {(row: Row) => string} */
  const called = (row) => inWords(row[column], figure.columns[column]),
    words = rows.map(called);
  const widest = Math.max(0, ...figure.rows.map((row) => textWidth(called(row)))) + 12;
  const beside = widest <= width * 0.3;
  return {words, beside, left: beside ? Math.ceil(widest) : 0, above: beside ? 0 : 18};
}

/** @type {(figure: Chart, rows: Row[], width: number, colours: string[], most: number) => SVGElement} */
export function bars(figure, rows, width, colours, most) {
  const {drawing} = figure,
    {words, beside, left, above} = labels(figure, rows, width);
  /** @type {[column: number, colour: string][]} */
  const every = drawing.values.map((name, number) => [
    figure.columns.findIndex((one) => one.name === name),
    colours[number],
  ]);
  const some = every.filter(([column]) => figure.rows.some((row) => known(row[column]))),
    series = some.length ? some : every;
  const columns = series.map(([column]) => column),
    unit = figure.columns[every[0][0]].unit,
    many = columns.length;
  const thick = many > 1 ? 11 : 16,
    gap = many > 1 ? 14 : 10,
    each = above + many * (thick + 1) + gap;
  // Versions may stand for different files.
  const files = drawing.label === "version" ? figure.columns.findIndex((one) => one.name === "files") : -1;
  /** @type {(row: Row, column: number) => string} */
  const written = (row, column) => {
    const its = known(row[column]) || many === 1 ? inWords(row[column], figure.columns[column]) : "not for all files";
    return files < 0 ? its : `${its} in ${counted(row[files], "file")}`;
  };
  const widest = Math.max(...figure.rows.flatMap((row) => columns.map((column) => textWidth(written(row, column)))));
  const room = Math.min(widest + 14, 0.7 * width),
    scale = scaleTo(Math.max(most, drawing.one ? 1.05 : 0), unit === "count");
  /** @type {(value: number) => number} */
  const place = (value) => left + (value / scale.end) * (width - left - room);
  const bottom = rows.length * each + 4;
  /** @type {SVGElement[]} */
  const marks = [];
  rows.forEach((row, number) => {
    const top = number * each + 6;
    marks.push(
      titled(
        beside
          ? label(left - 10, top + (many * (thick + 1)) / 2 + 4, words[number], "end", "strong")
          : label(0, top + 12, fitting(words[number], width), "start", "strong"),
        words[number],
      ),
    );
    series.forEach(([column, colour], at) => {
      const value = row[column],
        y = top + above + at * (thick + 1);
      const x = known(value) ? place(value) : left;
      const bar = svg("rect", {
        x: left,
        y,
        width: Math.max(x - left, known(value) && value > 0 ? 1.5 : 0),
        height: thick,
        rx: 2,
      });
      const name = many > 1 ? `${words[number]}, ${figure.columns[column].title}` : words[number];
      marks.push(titled(filled(bar, colour), `${name}: ${written(row, column)}`));
      // Words do not stand on the line at 1.
      const shown = written(row, column),
        crossed = drawing.one && x <= place(1) && x + 6 + textWidth(shown) > place(1) - 4;
      marks.push(label((crossed ? place(1) : x) + 6, y + thick / 2 + 4, shown, "start", many > 1 ? "small" : ""));
    });
  });
  return canvas(
    width,
    bottom + AXIS,
    figure.title,
    figure.sentence,
    ...axis(scale, place, 0, bottom, unit, drawing.axis, drawing.one, width),
    ...marks,
  );
}

/** @type {(figure: Chart, rows: Row[], width: number) => SVGElement} */
export function dots(figure, rows, width) {
  const {drawing} = figure,
    {words, beside, left, above} = labels(figure, rows, width);
  /** @type {(name: string) => number} */
  const column = (name) => figure.columns.findIndex((one) => one.name === name);
  const [low, high] = (drawing.span ?? []).map(column),
    files = column("files");
  const room = width < 480 ? 12 : 96,
    each = 28 + above,
    bottom = rows.length * each + 6;
  const most = Math.max(
    1.05,
    ...rows.flatMap((row) => [...drawing.values.map((name) => row[column(name)] ?? 0), row[high] ?? 0]),
  );
  const scale = scaleTo(most, false);
  /** @type {(value: number) => number} */
  const place = (value) => left + (value / scale.end) * (width - left - room);
  /** @type {SVGElement[]} */
  const marks = [];
  rows.forEach((row, number) => {
    const y = number * each + 18 + above;
    marks.push(
      titled(
        beside
          ? label(left - 10, y + 4, words[number], "end", "strong")
          : label(0, y - 14, fitting(words[number], width - 80), "start", "strong"),
        words[number],
      ),
    );
    if (room > 20) marks.push(label(width, y + 4, counted(row[files], "file"), "end"));
    else if (!beside) marks.push(label(width, y - 14, counted(row[files], "file"), "end"));
    marks.push(line(left, y, width - room, y, "grid"));
    if (known(row[low]) && known(row[high])) {
      const spanned = svg("line", {x1: place(row[low]), x2: place(row[high]), y1: y, y2: y, class: "span"});
      marks.push(
        titled(
          spanned,
          `${words[number]}: four fifths of the files from ${ratio(row[low])} to ${ratio(row[high])} in version 3`,
        ),
      );
    }
    for (const name of drawing.values) {
      const value = row[column(name)];
      if (!known(value)) continue;
      marks.push(
        titled(
          filled(dot[name](place(value), y), SERIES[name][1]),
          `${words[number]}, ${SERIES[name][0].toLowerCase()}: ${ratio(value)}`,
        ),
      );
    }
  });
  return canvas(
    width,
    bottom + AXIS,
    figure.title,
    figure.sentence,
    ...axis(scale, place, 0, bottom, "ratio", drawing.axis, drawing.one, width),
    ...marks,
  );
}

const BIN = 0.05;
/** @type {(figure: Chart, rows: Row[], width: number, colours: string, most: number, lastBin: number) => SVGElement} */
export function histogram(figure, rows, width, colours, most, lastBin) {
  const {drawing} = figure;
  /** @type {(name: string) => number} */
  const column = (name) => figure.columns.findIndex((one) => one.name === name);
  const from = column(drawing.label),
    value = column(drawing.values[0]),
    unit = figure.columns[from].unit;
  const left = 38,
    top = 8,
    tall = 150,
    bottom = top + tall,
    end = lastBin + BIN;
  const up = scaleTo(most, false);
  /** @type {(at: number) => number} */
  const x = (at) => left + (at / end) * (width - left - 8);
  /** @type {(share: number) => number} */
  const y = (share) => bottom - (share / up.end) * tall;
  /** @type {SVGElement[]} */
  const marks = [];
  for (const tick of up.ticks) {
    marks.push(
      line(left, y(tick), width - 8, y(tick), "grid"),
      label(left - 6, y(tick) + 4, tickWords.share(tick), "end"),
    );
  }
  if (drawing.one) {
    marks.push(
      svg("rect", {x: x(1), y: top, width: x(end) - x(1), height: tall, class: "worse"}),
      line(x(1), top - 4, x(1), bottom, "one"),
    );
    const words = "larger",
      room = x(end) - x(1);
    if (textWidth(words) < room) marks.push(label(x(1) + 5, top + 11, words));
  }
  for (const row of rows) {
    const bar = svg("rect", {
      x: x(row[from]) + 0.5,
      y: y(row[value]),
      width: Math.max(1, x(BIN) - x(0) - 1),
      height: bottom - y(row[value]),
    });
    const range =
      row[from] >= lastBin && drawing.one
        ? `from ${tickWords[unit](row[from])} on`
        : `${tickWords[unit](row[from])} to ${tickWords[unit](row[from] + BIN)}`;
    marks.push(
      titled(filled(bar, colours), `${range}: ${percent(row[value])}, ${counted(row[column("files")], "file")}`),
    );
  }
  marks.push(line(left, bottom, width - 8, bottom, "axis"));
  for (let at = 0; at <= lastBin + 1e-9; at += end > 1.5 ? 0.5 : 0.25) {
    const text = tickWords[unit](at) + (drawing.one && at >= lastBin - 1e-9 ? "+" : "");
    marks.push(label(x(at), bottom + 16, text, "middle"));
  }
  marks.push(label(left, bottom + 33, fitting(drawing.axis, width - left)));
  return canvas(width, bottom + AXIS, figure.title, figure.sentence, ...marks);
}

// Parts of a whole, one behind the other.
/** @type {(figure: Chart, rows: Row[], width: number, order: any[], most: number) => SVGElement} */
export function stack(figure, rows, width, order, most) {
  const {drawing} = figure;
  /** @type {(name: string) => number} */
  const column = (name) => figure.columns.findIndex((one) => one.name === name);
  const part = column(drawing.label),
    value = column(drawing.values[0]),
    unit = figure.columns[value].unit;
  const tall = 34;
  /** @type {(at: number) => number} */
  const place = (at) => (at / most) * (width - 2) + 1;
  /** @type {SVGElement[]} */
  const marks = [];
  let at = 0;
  for (const row of rows) {
    const from = place(at),
      to = place(at + (row[value] ?? 0)),
      words = inWords(row[part], figure.columns[part]);
    at += row[value] ?? 0;
    const written = inWords(row[value], figure.columns[value]);
    const box = svg("rect", {x: from, y: 4, width: Math.max(0, to - from - 1), height: tall, rx: 2});
    marks.push(titled(filled(box, PARTS[order.indexOf(row[part]) % PARTS.length]), `${words}: ${written}`));
    const short = unit === "share" ? tickWords.share(Number(row[value].toPrecision(2))) : ratio(row[value]);
    const half = textWidth(short) / 2 + 4,
      one = place(1);
    // Words do not stand on the line at 1.
    const beside = drawing.one
      ? [(from + to) / 2, one - half, one + half].find(
          (x) => Math.abs(x - one) >= half && x - half >= from && x + half <= to,
        )
      : (from + to) / 2;
    if (2 * half < to - from && known(beside))
      marks.push(
        label(beside, 4 + tall / 2 + 4, short, "middle", `inside on${order.indexOf(row[part]) % PARTS.length}`),
      );
  }
  if (drawing.one && most >= 1) {
    marks.push(line(place(1), 0, place(1), tall + 8, "one"));
    const words = "as large as .eh_frame and .eh_frame_hdr",
      half = textWidth(words) / 2;
    marks.push(label(Math.min(Math.max(place(1), half), width - half), tall + 22, words, "middle"));
  }
  return canvas(width, tall + (drawing.one ? 28 : 10), figure.title, figure.sentence, ...marks);
}
