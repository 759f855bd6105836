// The figures: what they say, drawn, as tables, and with the question in SQL.
/** @import {Chapter, Chart, Column, Figure, Row} from "./types.js" */
import {NONE, count, counted, html, known} from "../pages/common.js";
import {PARTS, SERIES, bars, dot, dots, histogram, legend, stack} from "./survey_charts.js";
import {tableBox} from "./survey_table.js";
import {NUMBERS, inWords, nameAndPlace, prose} from "./survey_words.js";

const SHOWN = 10,
  DRAWN = 12;
const PAPER = {whole: 680, third: 280}; // How wide charts are on paper, in pixels.

/** @type {(path: string, number: number) => HTMLElement[]} */
function fileLink(path, number) {
  const [name, folder] = nameAndPlace(path);
  return [
    html("a", {href: `#file=${number}`}, html("bdi", {}, name || NONE)),
    html("span", {class: "where"}, html("bdi", {}, folder)),
  ];
}
/** @type {(columns: Column[]) => [column: Column, place: number][]} */
const numbered = (columns) => columns.map((column, place) => [column, place]);

// A table of rows; a file in it leads to its part of the page.
/** @type {(figure: Figure, rows: Row[], caption: string) => HTMLElement} */
function tableOf(figure, rows, caption) {
  const link = figure.columns.findIndex((column) => column.unit === "content");
  const shown = numbered(figure.columns).filter(([, place]) => place !== link);
  /** @type {(row: Row, shown: [column: Column, place: number], first: boolean) => HTMLElement} */
  const cell = (row, [column, place], first) => {
    const words = inWords(row[place], column);
    if (NUMBERS.has(column.unit)) return html("td", {class: "right"}, words);
    const inner =
      column.name === "file" && link >= 0 && known(row[link]) ? fileLink(words, row[link]) : html("bdi", {}, words);
    const long = words.length > 24;
    return first
      ? html("th", {scope: "row", class: long ? "text" : null}, inner)
      : html("td", {class: long ? "text" : null}, inner);
  };
  return tableBox(
    shown.map(([column]) => [column.title, NUMBERS.has(column.unit)]),
    rows.map((row) => shown.map((one, number) => cell(row, one, number === 0))),
    caption,
  );
}

// A table of which one sees the first rows, and all if one wants.
/** @type {(figure: Figure) => HTMLElement} */
function growingTable(figure) {
  const holder = html("div", {});
  /** @type {(many: number) => void} */
  const show = (many) => {
    holder.replaceChildren(tableOf(figure, figure.rows.slice(0, many), figure.title));
    if (many < figure.rows.length) {
      const button = html(
        "button",
        {type: "button", class: "small more"},
        `Show all ${count(figure.rows.length)} rows`,
      );
      button.addEventListener("click", () => {
        show(figure.rows.length);
        /** @type {HTMLElement | null} */ (holder.querySelector(".scroll"))?.focus();
      });
      holder.append(
        button,
        html("p", {class: "quiet paper"}, `These are the first ${count(many)} of ${count(figure.rows.length)} rows.`),
      );
    }
  };
  show(SHOWN);
  return holder;
}

// One row reads better as a list of its columns.
/** @type {(figure: Figure) => HTMLElement} */
function listOf(figure) {
  return html(
    "dl",
    {class: "facts"},
    figure.columns.map((column, place) =>
      html("div", {}, html("dt", {}, column.title), html("dd", {}, inWords(figure.rows[0][place], column))),
    ),
  );
}

/** @type {(figure: Figure) => string} */
function csvOf(figure) {
  /** @type {(value: unknown) => string} */
  const quoted = (value) => {
    const text = known(value) ? String(value) : "";
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const shown = numbered(figure.columns).filter(([column]) => column.unit !== "content");
  const lines = [
    shown.map(([column]) => column.name),
    ...figure.rows.map((row) => shown.map(([, place]) => row[place])),
  ];
  return lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
}

/** @type {(name: string, text: string) => void} */
function saved(name, text) {
  const link = html("a", {href: URL.createObjectURL(new Blob([text], {type: "text/csv"})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What charts do before they are printed and after.
/** @type {WeakMap<Element, (on: boolean) => void>} */
const printing = new WeakMap();
/** @type {(on: boolean) => void} */
export const printCharts = (on) => document.querySelectorAll(".chart").forEach((chart) => printing.get(chart)?.(on));

// Draws a figure into an element, again whenever that gets another width.
/** @type {(figure: Chart, holder: HTMLElement) => void} */
export function drawn(figure, holder) {
  const {drawing} = figure;
  /** @type {(name: string) => number} */
  const column = (name) => figure.columns.findIndex((one) => one.name === name);
  const values = drawing.values.map(column),
    all = figure.rows.flatMap((row) => values.map((value) => row[value] ?? 0));
  /** @type {Map<any, Row[]>} */
  const panels = new Map();
  for (const row of figure.rows) {
    const key = drawing.panel ? row[column(drawing.panel)] : null;
    const those = panels.get(key);
    if (those) those.push(row);
    else panels.set(key, [row]);
  }
  const plain = drawing.values.length > 1 ? ["--c2", "--c3", "--c4"] : ["--v3"];
  const series = drawing.values.map((name, number) => SERIES[name]?.[1] ?? plain[number]);
  /** @type {(key: unknown) => string} */
  const colour = (key) => (["1", "2", "3"].includes(String(key)) ? `--v${key}` : "--c2");
  const perVersion = drawing.kind === "bars" && drawing.label === "version";
  const order = drawing.kind === "stack" ? [...new Set(figure.rows.map((row) => row[column(drawing.label)]))] : [];
  const most =
    drawing.kind === "stack"
      ? Math.max(
          ...[...panels.values()].map((rows) => rows.reduce((sum, row) => sum + (row[values[0]] ?? 0), 0)),
          drawing.one ? 1 : 0,
        )
      : Math.max(...all);
  const lastBin = drawing.one ? 2 : 0.95;
  /** @type {(rows: Row[], key: unknown, width: number) => SVGElement} */
  const draw = (rows, key, width) => {
    switch (drawing.kind) {
      case "dots":
        return dots(figure, rows, width);
      case "histogram":
        return histogram(figure, rows, width, key === null ? "--c2" : colour(key), most, lastBin);
      case "stack":
        return stack(figure, rows, width, order, most);
      default: {
        const shown = bars(figure, rows.slice(0, DRAWN), width, drawing.panel ? [colour(key)] : series, most);
        if (perVersion)
          shown.querySelectorAll("rect").forEach((bar, place) => {
            bar.style.fill = `var(--v${rows[place][column("version")]})`;
          });
        return shown;
      }
    }
  };
  /** @type {[rows: Row[], key: unknown, place: HTMLElement][]} */
  const parts = [];
  for (const [key, rows] of panels) {
    const place = html("div", {class: "drawing"});
    const heading =
      key === null
        ? null
        : html(
            "h4",
            {},
            html("bdi", {}, inWords(key, figure.columns[column(drawing.panel ?? "")])),
            drawing.kind === "histogram" &&
              html(
                "span",
                {class: "quiet"},
                ` ${counted(
                  rows.reduce((sum, row) => sum + row[column("files")], 0),
                  "file",
                )}`,
              ),
          );
    parts.push([rows, key, place]);
    holder.append(
      html(
        "div",
        {class: drawing.kind === "histogram" ? "panel-narrow" : "panel-wide"},
        heading,
        place,
        drawing.kind === "bars" &&
          rows.length > DRAWN &&
          html("p", {class: "quiet sentence"}, `${count(rows.length - DRAWN)} more are among the numbers.`),
      ),
    );
  }
  if (drawing.kind === "histogram" && panels.size > 1) holder.classList.add("multiples");
  /** @type {[words: string, colour: string, shape?: SVGElement | null][]} */
  const entries =
    drawing.kind === "stack"
      ? order.map((part, number) => [
          inWords(part, figure.columns[column(drawing.label)]),
          PARTS[number % PARTS.length],
        ])
      : drawing.values.length > 1
        ? drawing.values.flatMap((name, number) =>
            figure.rows.some((row) => known(row[values[number]]))
              ? [
                  [
                    figure.columns[values[number]].title,
                    series[number],
                    drawing.kind === "dots" ? dot[name](0, 0) : null,
                  ],
                ]
              : [],
          )
        : [];
  if (entries.length) holder.before(legend(entries));
  let width = 0;
  /** @type {(wide?: number) => void} */
  const drawAll = (wide) => {
    for (const [rows, key, place] of parts) place.replaceChildren(draw(rows, key, wide ?? place.clientWidth));
  };
  const redraw = () => {
    const now = parts[0][2].clientWidth;
    if (!now || now === width) return;
    width = now;
    drawAll();
  };
  printing.set(holder, (on) => {
    width = 0;
    if (on) drawAll(holder.classList.contains("multiples") ? PAPER.third : PAPER.whole);
    else redraw();
  });
  new ResizeObserver(redraw).observe(holder);
}

/** @type {(figure: Figure) => HTMLElement} */
function figureOf(figure) {
  const id = `figure-${figure.name}`;
  const its = html(
    "figure",
    {class: "panel figure", id, "aria-labelledby": `${id}-title`, tabindex: "-1"},
    html("h3", {id: `${id}-title`}, figure.title),
    figure.says && html("p", {class: "says"}, prose(figure.says)),
    html("p", {class: "quiet sentence"}, figure.sentence),
  );
  const table = () => (figure.single ? listOf(figure) : growingTable(figure));
  if (!figure.rows.length) its.append(html("p", {class: "none"}, figure.empty));
  else if (figure.drawing) {
    const {drawing} = figure;
    const holder = html("div", {class: "chart"});
    its.append(holder);
    drawn({...figure, drawing}, holder);
  } else its.append(table());
  const question = html("pre", {tabindex: "0"}, html("code", {}, figure.sql));
  const copy = html("button", {type: "button", class: "small screen"}, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(figure.sql).then(
      () => {
        copy.textContent = "Copied";
      },
      () => {
        getSelection()?.selectAllChildren(question);
      },
    );
  });
  const feet = html("div", {class: "feet"});
  if (figure.drawing && figure.rows.length) {
    const numbers = html("details", {}, html("summary", {}, "Numbers"));
    numbers.addEventListener("toggle", () => {
      if (numbers.open && numbers.children.length === 1) numbers.append(table());
    });
    feet.append(numbers);
  }
  feet.append(html("details", {}, html("summary", {}, "SQL"), question, copy));
  if (figure.rows.length) {
    const file = html("button", {type: "button", class: "plain screen", "aria-label": `${figure.title} as CSV`}, "CSV");
    file.addEventListener("click", () => saved(`${figure.name}.csv`, csvOf(figure)));
    feet.append(file);
  }
  its.append(feet);
  return its;
}

/** @type {(chapter: Chapter) => HTMLElement} */
export function chapterOf(chapter) {
  const id = `chapter-${chapter.name}`;
  return html(
    "section",
    {class: "chapter", id, "aria-labelledby": `${id}-title`, tabindex: "-1"},
    html("h2", {id: `${id}-title`}, chapter.title),
    html("div", {class: "figures"}, chapter.figures.map(figureOf)),
  );
}
