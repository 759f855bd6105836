// All numbers of a file, and how its part of the page shows them.
/** @import {Files} from "./survey_list.js" */
/** @import {Children, Numbers} from "../pages/types.js" */
/** @import {Columns} from "../pages/columns.js" */
import {sums} from "../pages/columns.js";
import {NONE, address, html} from "../pages/common.js";
import {tableBox} from "./survey_table.js";

// What the list does not have of a file, read when the first one is opened.
export class Details {
  /** @param {Files} files @param {Columns} columns */
  constructor(files, columns) {
    this.files = files;
    this.columns = columns;
    /** @type {Map<string, Numbers>} */
    this.kept = new Map();
    this.firstReason = sums(this.numbers("reasons"));
    this.names = columns.texts("reason_name", this.firstReason[files.count]);
    this.contents = columns.texts("content", files.count);
  }
  /** @type {(name: string) => Numbers} */
  numbers(name) {
    const there = this.columns.known.has(name);
    const kept = this.kept.get(name) ?? (there ? this.columns.numbers(name) : this.files.numbers(name));
    this.kept.set(name, kept);
    return kept;
  }
  /** @type {(name: string, row: number) => number | null} */
  number(name, row) {
    const value = this.numbers(name)[row];
    return value ? value - 1 : null;
  }
  /** @type {(name: string, row: number) => string} */
  word(name, row) {
    return this.files.words[name][this.numbers(name)[row]];
  }
  /** @type {(row: number) => string} */
  address(row) {
    const its = this.columns.known.get("reason_address")?.[row];
    return its ? address(BigInt(its) - 1n) : NONE;
  }
}

/** @type {(pairs: [title: string, value: string][]) => HTMLElement} */
export const facts = (pairs) =>
  html(
    "dl",
    {class: "facts"},
    pairs
      .filter(([, value]) => value && value !== NONE && value !== "0 bytes")
      .map(([title, value]) =>
        html(
          "div",
          {class: value.length > 28 ? "long" : null},
          html("dt", {}, title),
          html("dd", {}, html("bdi", {}, value)),
        ),
      ),
  );
/** @type {(title: string, ...children: Children[]) => HTMLElement} */
export const part = (title, ...children) => html("section", {}, html("h3", {}, title), ...children);
// A table of some columns, each a title and whether it stands to the right.
/** @type {(columns: [title: string, right: boolean][], rows: string[][], caption: string) => HTMLElement} */
export const smallTable = (columns, rows, caption) =>
  tableBox(
    columns,
    rows.map((row) =>
      row.map((value, place) => {
        const inner = html("bdi", {}, value);
        return place
          ? html("td", {class: columns[place][1] ? "right" : null}, inner)
          : html("th", {scope: "row"}, inner);
      }),
    ),
    caption,
  );
