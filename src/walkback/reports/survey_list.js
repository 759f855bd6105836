// The list of all files: searched, chosen from and sorted; only the rows that are seen are in the page.
/** @import {Numbers} from "../pages/types.js" */
/** @import {Columns} from "../pages/columns.js" */
/** @import {SurveyMeta} from "./types.js" */
import {sums} from "../pages/columns.js";
import {NONE, byId, bytes, count, counted, html, known, ratio} from "../pages/common.js";
import {nameAndPlace} from "./survey_words.js";

const ROW = 54,
  SPARE = 6;
const CHOICES = [
  ["machine", "Architecture"],
  ["producer", "Producer"],
  ["language", "Language"],
  ["kind", "Kind"],
  ["outcome", "Outcome"],
];

export class Files {
  /** @param {SurveyMeta} meta @param {Columns} columns */
  constructor(meta, columns) {
    /** @type {Map<string, Numbers>} */
    this.kept = new Map();
    // What a search looks into; made when there is one.
    /** @type {string[] | null} */
    this.searched = null;
    this.words = meta.words;
    this.columns = columns;
    const places = this.numbers("places");
    this.count = places.length;
    this.first = sums(places);
    this.places = columns.texts("place", this.first[this.count]);
    this.package = this.numbers("package");
    this.buildId = columns.texts("build_id", this.count);
  }
  /** @type {(name: string) => Numbers} */
  numbers(name) {
    const kept = this.kept.get(name) ?? this.columns.numbers(name);
    this.kept.set(name, kept);
    return kept;
  }
  // Numbers are stored one more than they are.
  /** @type {(name: string, file: number) => number | null} */
  number(name, file) {
    const value = this.numbers(name)[file];
    return value ? value - 1 : null;
  }
  /** @type {(name: string, file: number) => string} */
  word(name, file) {
    return this.words[name][this.numbers(name)[file]];
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
    this.waiting = false;
    // Which rows are there.
    this.drawn = "";
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
    this.scroll.addEventListener("scroll", () => this.soon(), {passive: true});
    this.table.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.soon()).observe(this.scroll);
    this.sort(3, false);
  }
  /** @type {(column: Listed) => string | null} */
  style(column) {
    return [column.write ? "right" : "", column.hide ? "wide" : ""].filter(Boolean).join(" ") || null;
  }
  /** @type {(number: number, rising?: boolean) => void} */
  sort(number, rising = number === this.sorted ? !this.rising : !LISTED[number].write) {
    this.sorted = number;
    this.rising = rising;
    this.heads.forEach((head, place) =>
      head.setAttribute("aria-sort", place !== number ? "none" : rising ? "ascending" : "descending"),
    );
    const {value} = LISTED[number],
      sign = rising ? 1 : -1,
      {files} = this;
    this.order = Uint32Array.from({length: files.count}, (_, file) => file);
    if (value) {
      // What is not known comes last, whichever way.
      const keys = Float64Array.from(this.order, (file) => {
        const its = value(files, file);
        return known(its) ? sign * its : Infinity;
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
  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }
  draw() {
    const tall = this.scroll.clientHeight || 600,
      top = this.scroll.scrollTop;
    const begin = Math.max(0, Math.floor(top / ROW) - SPARE),
      end = Math.min(this.shown.length, Math.ceil((top + tall) / ROW) + SPARE);
    const key = `${begin}-${end}-${this.active}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const had = this.body.contains(document.activeElement);
    /** @type {(many: number) => HTMLElement} */
    const space = (many) => {
      const cell = html("td");
      cell.style.height = `${many * ROW}px`;
      return html("tr", {"aria-hidden": "true", class: "space"}, cell);
    };
    const rows = [];
    for (let place = begin; place < end; place++) rows.push(this.row(place));
    this.body.replaceChildren(space(begin), ...rows, space(this.shown.length - end));
    if (had) this.focus();
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
      html(
        "td",
        {class: this.style(column)},
        column.words ? column.words(files, file) || NONE : column.write?.(column.value?.(files, file) ?? null),
      ),
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
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW) - 2);
    /** @type {Record<string, number>} */
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (!link.matches("tbody a") || !(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.go(Math.min(this.shown.length - 1, Math.max(0, Number(link.dataset.place) + steps[event.key])));
  }
  // Move to a row, and show it.
  /** @type {(place: number) => void} */
  go(place) {
    this.active = place;
    const head = this.heads[0].offsetHeight,
      top = place * ROW,
      {scroll} = this;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top + ROW + head > scroll.scrollTop + scroll.clientHeight)
      scroll.scrollTop = top + ROW + head - scroll.clientHeight;
    this.draw();
    this.focus();
  }
  // To the link that arrow keys start from.
  focus() {
    /** @type {HTMLElement | null} */ (this.body.querySelector('a[tabindex="0"]'))?.focus({preventScroll: true});
  }
}

// The search and the choices above the list.
/** @type {(files: Files, list: FileList) => void} */
export function controls(files, list) {
  const search = /** @type {HTMLInputElement} */ (byId("search"));
  const clear = /** @type {HTMLButtonElement} */ (byId("clear"));
  const dialog = /** @type {HTMLDialogElement} */ (byId("file"));
  const choices = CHOICES.filter(([name]) => files.words[name].length > 2).map(([name, title]) => {
    const there = new Uint32Array(files.words[name].length);
    for (const number of files.numbers(name)) there[number]++;
    const options = files.words[name].map((word, number) =>
      there[number] ? html("option", {value: number}, `${word || "unknown"} (${count(there[number])})`) : null,
    );
    return html("select", {"aria-label": title, name}, html("option", {value: ""}, title), options);
  });
  byId("filters").replaceChildren(...choices);
  const apply = () => {
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = choices
      .filter((one) => one.value !== "")
      .map((one) => ({numbers: files.numbers(one.name), value: Number(one.value)}));
    clear.disabled = !wanted.length && !chosen.length;
    let accepted = null;
    if (wanted.length || chosen.length) {
      const texts = wanted.length ? files.texts() : [];
      accepted = new Uint8Array(files.count);
      for (let file = 0; file < files.count; file++) {
        accepted[file] = Number(
          chosen.every(({numbers, value}) => numbers[file] === value) &&
            wanted.every((word) => texts[file].includes(word)),
        );
      }
    }
    list.show(accepted);
    const shown = list.shown.length;
    byId("matched").textContent = accepted
      ? `${count(shown)} of ${counted(files.count, "file")}`
      : counted(files.count, "file");
  };
  let typing = 0;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(apply, 90);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      search.value = "";
      apply();
    }
    if (event.key === "ArrowDown" && list.shown.length) {
      event.preventDefault();
      apply();
      list.go(0);
    }
  });
  choices.forEach((one) => one.addEventListener("change", apply));
  clear.addEventListener("click", () => {
    search.value = "";
    choices.forEach((one) => {
      one.value = "";
    });
    apply();
    search.focus();
  });
  byId("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  document.addEventListener("keydown", (event) => {
    if (
      event.key === "/" &&
      !dialog.open &&
      !(/** @type {Element} */ (event.target).matches("input, select, textarea"))
    ) {
      event.preventDefault();
      search.focus();
    }
  });
  apply();
}
