// The list of all files, sorted; only the rows that are seen are in the page.
/** @import {Columns} from "../pages/columns.js" */
/** @import {SurveyMeta} from "./types.js" */
import {KeptColumns, sums} from "../pages/columns.js";
import {NONE, bytes, clamped, count, html, known, ratio} from "../pages/common.js";
import {isModified, oncePerFrame} from "../pages/events.js";
import {nameAndPlace} from "./survey_words.js";

const ROW_HEIGHT = 54; // As the style has it.
const HIDDEN_ROWS = 6; // Kept above and below those in sight.
const HEIGHT_UNKNOWN = 600;
const PAGE_OVERLAP = 2;
const SORTED_FIRST = "Call frames";

export class Files extends KeptColumns {
  /** @param {SurveyMeta} meta @param {Columns} columns */
  constructor(meta, columns) {
    super(columns, meta.words);
    // What a search looks into; made when there is one.
    /** @type {string[] | null} */
    this.searched = null;
    const places = this.numbers("places");
    this.count = places.length;
    this.first = sums(places);
    this.places = columns.texts("place", this.first[this.count]);
    this.package = this.numbers("package");
    this.buildId = columns.texts("build_id", this.count);
  }
  /** @type {(version: number, file: number) => number | null} */
  ratio(version, file) {
    const size = this.number(`v${version}`, file),
      whole = this.number("call_frames", file);
    return known(size) && whole ? size / whole : null;
  }
  /** @type {(file: number) => number | null} */
  leftOut(file) {
    const covered = this.number("covered3", file);
    return known(covered) ? (this.number("functions", file) ?? 0) - covered : null;
  }
  /** @type {(file: number) => string} */
  name(file) {
    return this.places[this.first[file]];
  }
  // What a search looks into, in small letters.
  /** @type {() => string[]} */
  texts() {
    return (this.searched ??= Array.from({length: this.count}, (_, file) => {
      const words = [this.buildId[file]];
      for (let place = this.first[file]; place < this.first[file + 1]; place++)
        words.push(this.places[place], this.words.package[this.package[place]]);
      return words.join("\n").toLowerCase();
    }));
  }
}

/**
 * @typedef {object} Listed
 * @property {string} title
 * @property {((files: Files, file: number) => number | null) | null} value
 * @property {(files: Files, file: number) => string} [words]
 * @property {(value: number | null) => string} [write]
 * @property {boolean} [hide]
 */

/** @type {Listed[]} */
const LISTED = [
  {title: "File", value: null},
  {
    title: "Architecture",
    value: (files, file) => files.numbers("machine")[file],
    words: (files, file) => files.word("machine", file),
    hide: true,
  },
  {
    title: "Producer",
    value: (files, file) => files.numbers("producer")[file],
    words: (files, file) => files.word("producer", file),
    hide: true,
  },
  {title: "Call frames", value: (files, file) => files.number("call_frames", file), write: bytes},
  {title: "V2", value: (files, file) => files.ratio(2, file), write: ratio, hide: true},
  {title: "V3", value: (files, file) => files.ratio(3, file), write: ratio},
  {title: "Left out", value: (files, file) => files.leftOut(file), write: count, hide: true},
];

export class FileList {
  /** @param {Files} files @param {HTMLElement} holder */
  constructor(files, holder) {
    this.files = files;
    // The column by which it is sorted, and which way.
    this.sorted = 0;
    this.rising = true;
    // The row that arrow keys start from.
    this.active = 0;
    // Which files to show: a byte for each, or all.
    /** @type {Uint8Array | null} */
    this.accepted = null;
    // Which rows are there.
    this.drawn = "";
    this.redraw = oncePerFrame(() => this.draw());
    this.order = Uint32Array.from({length: files.count}, (_, file) => file);
    this.shown = this.order;
    this.heads = LISTED.map((column, number) =>
      html(
        "th",
        {scope: "col", class: this.style(column)},
        html("button", {type: "button", onclick: () => this.sort(number)}, column.title),
      ),
    );
    this.body = html("tbody");
    this.table = html(
      "table",
      {class: "files"},
      html("caption", {class: "heard"}, "All files; arrow keys move, Enter opens"),
      html("thead", {}, html("tr", {"aria-rowindex": "1"}, this.heads)),
      this.body,
    );
    this.scroll = html("div", {class: "rows", tabindex: "-1"}, this.table);
    holder.replaceChildren(this.scroll);
    this.scroll.addEventListener("scroll", this.redraw, {passive: true});
    this.table.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(this.redraw).observe(this.scroll);
    this.sort(
      LISTED.findIndex(({title}) => title === SORTED_FIRST),
      false,
    );
  }
  /** @type {(column: Listed) => string | null} */
  style(column) {
    return [column.write ? "right" : "", column.hide ? "wide" : ""].filter(Boolean).join(" ") || null;
  }
  /** @type {(number: number, rising?: boolean) => void} */
  sort(number, rising = number === this.sorted ? !this.rising : !LISTED[number].write) {
    this.sorted = number;
    this.rising = rising;
    const way = rising ? "ascending" : "descending";
    this.heads.forEach((head, place) => head.setAttribute("aria-sort", place === number ? way : "none"));
    const {value} = LISTED[number],
      sign = rising ? 1 : -1,
      {files} = this;
    this.order = Uint32Array.from({length: files.count}, (_, file) => file);
    if (value) {
      // What is not known comes last, whichever way.
      const keys = Float64Array.from(this.order, (file) => {
        const key = value(files, file);
        return known(key) ? sign * key : Infinity;
      });
      this.order.sort((one, other) => keys[one] - keys[other] || one - other);
    } else if (!rising) this.order.reverse();
    this.show(this.accepted);
  }
  // Which files to show: a byte for each, or all.
  /** @type {(accepted: Uint8Array | null) => void} */
  show(accepted) {
    this.accepted = accepted;
    this.shown = accepted ? this.order.filter((file) => accepted[file]) : this.order;
    this.active = 0;
    this.scroll.scrollTop = 0;
    this.table.setAttribute("aria-rowcount", String(this.shown.length + 1));
    this.drawn = "";
    this.draw();
  }
  draw() {
    const height = this.scroll.clientHeight || HEIGHT_UNKNOWN,
      top = this.scroll.scrollTop;
    const begin = Math.max(0, Math.floor(top / ROW_HEIGHT) - HIDDEN_ROWS),
      end = Math.min(this.shown.length, Math.ceil((top + height) / ROW_HEIGHT) + HIDDEN_ROWS);
    const key = `${begin}-${end}-${this.active}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const hadFocus = this.body.contains(document.activeElement);
    const rows = [];
    for (let place = begin; place < end; place++) rows.push(this.row(place));
    this.body.replaceChildren(spaceFor(begin), ...rows, spaceFor(this.shown.length - end));
    if (hadFocus) this.focus();
  }
  /** @type {(place: number) => HTMLElement} */
  row(place) {
    const file = this.shown[place],
      {files} = this,
      [name, folder] = nameAndPlace(files.name(file));
    const link = html(
      "a",
      {href: `#file=${file}`, tabindex: place === this.active ? "0" : "-1", "data-place": place},
      html("bdi", {}, name || NONE),
    );
    const cells = LISTED.slice(1).map((column) =>
      html("td", {class: this.style(column)}, cellText(column, files, file)),
    );
    return html(
      "tr",
      {"aria-rowindex": place + 2},
      html("th", {scope: "row"}, link, html("span", {class: "where"}, html("bdi", {}, folder))),
      ...cells,
    );
  }
  /** @type {(event: KeyboardEvent) => void} */
  key(event) {
    const link = /** @type {HTMLElement} */ (event.target);
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW_HEIGHT) - PAGE_OVERLAP);
    /** @type {Record<string, number>} */
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (!link.matches("tbody a") || !(event.key in steps) || isModified(event)) return;
    event.preventDefault();
    this.go(clamped(Number(link.dataset.place) + steps[event.key], 0, this.shown.length - 1));
  }
  // Move to a row, and show it.
  /** @type {(place: number) => void} */
  go(place) {
    this.active = place;
    const {scroll} = this,
      top = place * ROW_HEIGHT,
      bottom = top + ROW_HEIGHT + this.heads[0].offsetHeight;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (bottom > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = bottom - scroll.clientHeight;
    this.draw();
    this.focus();
  }
  // To the link that arrow keys start from.
  focus() {
    /** @type {HTMLElement | null} */ (this.body.querySelector('a[tabindex="0"]'))?.focus({preventScroll: true});
  }
}

/** @type {(column: Listed, files: Files, file: number) => string | undefined} */
function cellText({value, words, write}, files, file) {
  return words ? words(files, file) || NONE : write?.(value?.(files, file) ?? null);
}

// A row as high as those that are not there.
/** @type {(rows: number) => HTMLElement} */
function spaceFor(rows) {
  const cell = html("td");
  cell.style.height = `${rows * ROW_HEIGHT}px`;
  return html("tr", {"aria-hidden": "true", class: "space"}, cell);
}
