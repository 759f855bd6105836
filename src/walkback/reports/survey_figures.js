// The figures: what they say, drawn, as tables, and with the question in SQL.
/** @import {Chapter, Column, Figure, Row} from "./types.js" */
import {NONE, count, folded, html, known, termAndValue} from "../pages/common.js";
import {drawInto} from "./survey_panels.js";
import {tableBox} from "./survey_table.js";
import {NUMBERS, inWords, nameAndPlace, prose} from "./survey_words.js";

const FIRST_ROWS = 10; // That a table has until one wants all.
const LONG_TEXT = 24; // Longer texts may have several lines.
const KEEP_MILLISECONDS = 1000; // How long a file that is saved stays there for the browser.

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
  const columns = numbered(figure.columns).filter(([column]) => column.shown);
  /** @type {(row: Row, column: [column: Column, place: number], first: boolean) => HTMLElement} */
  const cell = (row, [column, place], first) => {
    const words = inWords(row[place], column);
    if (NUMBERS.has(column.unit)) return html("td", {class: "right"}, words);
    const hasLink = column.name === "file" && link >= 0 && known(row[link]);
    const inner = hasLink ? fileLink(words, row[link]) : html("bdi", {}, words);
    const kind = words.length > LONG_TEXT ? "text" : null;
    return first ? html("th", {scope: "row", class: kind}, inner) : html("td", {class: kind}, inner);
  };
  return tableBox(
    columns.map(([column]) => [column.title, NUMBERS.has(column.unit)]),
    rows.map((row) => columns.map((column, number) => cell(row, column, number === 0))),
    caption,
  );
}

// A table that shows its first rows, and all of them on request.
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
  show(FIRST_ROWS);
  return holder;
}

// One row reads better as a list of its columns.
/** @type {(figure: Figure) => HTMLElement} */
function listOf(figure) {
  const columns = numbered(figure.columns).filter(([column]) => column.shown);
  return html(
    "dl",
    {class: "facts"},
    columns.map(([column, place]) => termAndValue(column.title, inWords(figure.rows[0][place], column))),
  );
}

/** @type {(figure: Figure) => string} */
function csvOf(figure) {
  /** @type {(value: unknown) => string} */
  const quoted = (value) => {
    const text = known(value) ? String(value) : "";
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const columns = numbered(figure.columns).filter(([column]) => column.unit !== "content");
  const lines = [
    columns.map(([column]) => column.name),
    ...figure.rows.map((row) => columns.map(([, place]) => row[place])),
  ];
  return lines.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
}

/** @type {(name: string, text: string) => void} */
function save(name, text) {
  const link = html("a", {href: URL.createObjectURL(new Blob([text], {type: "text/csv"})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_MILLISECONDS);
}

/** @type {(figure: Figure) => HTMLElement} */
function figureOf(figure) {
  const id = `figure-${figure.name}`;
  return html(
    "figure",
    {class: "panel figure", id, "aria-labelledby": `${id}-title`, tabindex: "-1"},
    headOf(figure, id),
    figure.says && html("p", {class: "says"}, prose(figure.says)),
    bodyOf(figure),
    html("div", {class: "feet"}, numbersOf(figure), questionOf(figure), csvButton(figure)),
  );
}

// The title, and behind a button what the figure shows and how it is counted.
/** @type {(figure: Figure, id: string) => DocumentFragment} */
function headOf({title, sentence}, id) {
  const caption = html("p", {class: "quiet sentence", id: `${id}-caption`, hidden: true}, sentence);
  const button = html(
    "button",
    {
      type: "button",
      class: "ask screen",
      "aria-expanded": "false",
      "aria-controls": caption.id,
      "aria-label": `About ${title}`,
    },
    "?",
  );
  button.addEventListener("click", () => {
    caption.hidden = !caption.hidden;
    button.setAttribute("aria-expanded", String(!caption.hidden));
  });
  const head = document.createDocumentFragment();
  head.append(html("div", {class: "figure-head"}, html("h3", {id: `${id}-title`}, title), button), caption);
  return head;
}

/** @type {(figure: Figure) => HTMLElement} */
const wholeTable = (figure) => (figure.single ? listOf(figure) : growingTable(figure));

// A figure's chart with its legend, or its table.
/** @type {(figure: Figure) => Node} */
function bodyOf(figure) {
  const {drawing} = figure;
  if (!drawing) return wholeTable(figure);
  const chart = html("div", {class: "chart"}),
    body = document.createDocumentFragment();
  body.append(chart);
  drawInto({...figure, drawing}, chart);
  return body;
}

// The numbers of a chart, made when somebody wants to see them.
/** @type {(figure: Figure) => HTMLDetailsElement | null} */
function numbersOf(figure) {
  if (!figure.drawing) return null;
  const numbers = folded("Numbers");
  numbers.addEventListener("toggle", () => {
    if (numbers.open && numbers.children.length === 1) numbers.append(wholeTable(figure));
  });
  return numbers;
}

/** @type {(figure: Figure) => HTMLElement} */
function questionOf({sql}) {
  const question = html("pre", {tabindex: "0"}, html("code", {}, sql));
  const copy = html("button", {type: "button", class: "small screen"}, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(sql);
      copy.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(question);
    }
  });
  return folded("SQL", question, copy);
}

/** @type {(figure: Figure) => HTMLElement} */
function csvButton(figure) {
  const onclick = () => save(`${figure.name}.csv`, csvOf(figure));
  return html(
    "button",
    {type: "button", class: "plain screen", "aria-label": `${figure.title} as CSV`, onclick},
    "CSV",
  );
}

/** @type {(chapter: Chapter) => HTMLElement} */
export function chapterOf(chapter) {
  const id = `chapter-${chapter.name}`;
  return html(
    "section",
    {class: "chapter", id, "aria-labelledby": `${id}-title`, tabindex: "-1"},
    html("h2", {id: `${id}-title`}, chapter.title),
    html("div", {class: "figures"}, chapter.figures.map(figureOf)),
    chapter.lines.length > 0 &&
      html(
        "ul",
        {class: "quiet lines"},
        chapter.lines.map((line) => html("li", {}, html("bdi", {}, line))),
      ),
  );
}
