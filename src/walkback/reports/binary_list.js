// A table of any length that only holds the rows in sight. The focus stays on the table; arrow keys move the chosen
// row, and screen readers read its number and the number of rows.
/** @import {Child} from "../pages/types.js" */
import {clamped, html} from "../pages/common.js";
import {isModified} from "../pages/events.js";

const ROW_HEIGHT = 30; // Where the style says nothing else.
const HIDDEN_ROWS = 2; // Kept above and below those in sight.
const HIGHEST = 8e6; // Browsers draw nothing beyond some ten million pixels.

/**
 * @typedef {object} ListColumn
 * @property {string} title
 * @property {string} className
 * @property {(one: number, other: number) => number} [sort]
 * @property {boolean} [down] Whether the largest come first.
 * @property {(row: number) => boolean} [isLast] Whether something comes last, whichever way is sorted.
 */
/**
 * @typedef {object} List
 * @property {string} label
 * @property {string} id
 * @property {ListColumn[]} columns
 * @property {(row: number) => Child[]} cells What stands in a row.
 * @property {(row: number, byHand: boolean) => void} chosen Called when somebody chooses a row.
 * @property {(column: ListColumn, down: boolean) => void} [sorted]
 */

export class LongTable {
  /** @param {List} list */
  constructor({label, columns, cells, chosen, sorted, id}) {
    this.columns = columns;
    this.cells = cells;
    this.chosen = chosen;
    this.sorted = sorted;
    this.id = id;
    // The rows in the page, and their height.
    this.first = -1;
    this.last = -1;
    this.rowHeight = ROW_HEIGHT;
    this.height = 0;
    // Where the screen was when it was printed.
    this.left = 0;
    this.count = 0;
    this.current = -1;
    this.printed = 0;
    /** @type {{column: ListColumn, down: boolean} | null} */
    this.sort = null;
    this.heads = columns.map((column) => this.head(column));
    this.tall = html("div", {class: "tall", role: "rowgroup"});
    this.view = html("div", {class: "view"}, this.tall);
    this.empty = html("p", {class: "empty quiet", hidden: true});
    const head = html("div", {role: "row", class: "row head", "aria-rowindex": 1}, this.heads);
    const grid = {class: "long", role: "grid", tabindex: 0, "aria-label": label, "aria-colcount": columns.length, id};
    this.element = html("div", grid, html("div", {role: "rowgroup"}, head), this.view, this.empty);
    this.view.addEventListener("scroll", () => this.draw());
    this.view.addEventListener("click", (event) => {
      const row = /** @type {Element} */ (event.target).closest("[data-row]");
      if (row instanceof HTMLElement) this.choose(Number(row.dataset.row), true);
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.measure()).observe(this.view);
  }

  /** @type {(column: ListColumn) => HTMLElement} */
  head(column) {
    const cell = html("div", {role: "columnheader", class: column.className});
    if (!column.sort) {
      cell.append(column.title);
      return cell;
    }
    cell.setAttribute("aria-sort", "none");
    cell.append(html("button", {type: "button", onclick: () => this.sortBy(column)}, column.title));
    return cell;
  }

  /** @type {(place: number, title: string) => void} */
  rename(place, title) {
    (this.heads[place].firstElementChild ?? this.heads[place]).textContent = title;
  }

  /** @type {(column: ListColumn) => void} */
  sortBy(column) {
    const down = this.sort?.column === column ? !this.sort.down : column.down === true;
    this.sort = {column, down};
    const way = down ? "descending" : "ascending";
    this.columns.forEach((other, place) => {
      if (other.sort) this.heads[place].setAttribute("aria-sort", other === column ? way : "none");
    });
    this.sorted?.(column, down);
  }

  // Show `count` rows; `current` is the chosen one.
  /** @type {(count: number, current?: number) => void} */
  show(count, current = -1) {
    this.count = count;
    this.current = current;
    this.empty.hidden = count > 0;
    this.view.hidden = count === 0;
    this.element.setAttribute("aria-rowcount", String(count + 1));
    this.measure();
    if (current >= 0) this.reveal();
    this.draw(true);
  }

  measure() {
    this.rowHeight = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || ROW_HEIGHT;
    this.height = Math.min((this.printed || this.count) * this.rowHeight, HIGHEST);
    this.tall.style.height = `${this.height}px`;
    this.view.style.flexBasis = `${this.height}px`;
    this.draw(true);
  }

  get visible() {
    return Math.max(1, Math.floor(this.view.clientHeight / this.rowHeight));
  }
  // Which row stands at the top, in rows and parts of one.
  get top() {
    const {room} = this;
    return room ? (this.view.scrollTop / room.pixels) * room.rows : this.view.scrollTop / this.rowHeight;
  }
  /** @param {number} row */
  set top(row) {
    const {room} = this;
    this.view.scrollTop = room ? (row / room.rows) * room.pixels : row * this.rowHeight;
  }
  // How far a table that is too high for browsers scrolls, and how many rows that stands for; null for others.
  get room() {
    const pixels = this.height - this.view.clientHeight;
    if (this.height < HIGHEST || pixels <= 0) return null;
    return {pixels, rows: this.count - this.view.clientHeight / this.rowHeight};
  }

  // On paper nothing scrolls: the first `most` rows are there. 0 is for the screen.
  /** @type {(most: number) => void} */
  print(most) {
    if (most) this.left = this.top;
    this.printed = Math.min(most, this.count);
    this.measure();
    if (!most) this.top = this.left;
    this.draw(true);
  }

  /** @type {(anew?: boolean) => void} */
  draw(anew = false) {
    const top = this.printed ? 0 : this.top,
      first = Math.max(0, Math.floor(top) - HIDDEN_ROWS);
    const last =
      this.printed || Math.min(this.count, Math.ceil(top + this.view.clientHeight / this.rowHeight) + HIDDEN_ROWS);
    if (!anew && first === this.first && last === this.last && this.height < HIGHEST) return;
    this.first = first;
    this.last = last;
    const offset = this.view.scrollTop - top * this.rowHeight;
    const rows = [];
    for (let row = first; row < last; row++) rows.push(this.row(row, offset + row * this.rowHeight));
    this.tall.replaceChildren(...rows);
    const active = `${this.id}-${this.current}`;
    if (this.current >= first && this.current < last) this.element.setAttribute("aria-activedescendant", active);
    else this.element.removeAttribute("aria-activedescendant");
  }

  /** @type {(row: number, y: number) => HTMLElement} */
  row(row, y) {
    const element = html("div", {
      role: "row",
      class: "row",
      id: `${this.id}-${row}`,
      "data-row": row,
      "aria-rowindex": row + 2,
      "aria-selected": String(row === this.current),
    });
    element.style.transform = `translateY(${y}px)`;
    this.cells(row).forEach((cell, place) => {
      element.append(html("div", {role: "gridcell", class: this.columns[place].className}, cell));
    });
    return element;
  }

  // Show which row is chosen, -1 for none, where it was chosen elsewhere.
  /** @type {(row: number) => void} */
  mark(row) {
    if (row === this.current) return;
    this.current = row;
    if (row >= 0) this.reveal();
    this.draw(true);
  }

  reveal() {
    const height = this.view.clientHeight / this.rowHeight;
    if (!height) return;
    if (this.current < this.top) this.top = this.current;
    else if (this.current + 1 > this.top + height) this.top = this.current + 1 - height;
  }

  /** @type {(row: number, byHand?: boolean) => void} */
  choose(row, byHand = false) {
    if (!this.count) return;
    this.current = clamped(row, 0, this.count - 1);
    this.reveal();
    this.draw(true);
    this.chosen(this.current, byHand);
  }

  /** @type {(event: KeyboardEvent) => void} */
  key(event) {
    if (event.target !== this.element || isModified(event)) return;
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: this.current + 1,
      ArrowUp: this.current - 1,
      PageDown: this.current + this.visible,
      PageUp: this.current - this.visible,
      Home: 0,
      End: this.count - 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.choose(moves[event.key], true);
  }
}
