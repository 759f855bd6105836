// All numbers of a file, and how its part of the page shows them.
/** @import {Files} from "./survey_list.js" */
/** @import {Children} from "../pages/types.js" */
/** @import {Columns} from "../pages/columns.js" */
import {KeptColumns, sums} from "../pages/columns.js";
import {NONE, address, html, termAndValue} from "../pages/common.js";

const LONG_VALUE = 28; // Longer values have a line of their own.

// What the list does not have of a file, read when the first one is opened.
export class Details extends KeptColumns {
  /** @param {Files} files @param {Columns} columns */
  constructor(files, columns) {
    super(columns, files.words);
    this.files = files;
    this.firstReason = sums(this.numbers("reasons"));
    this.names = columns.texts("reason_name", this.firstReason[files.count]);
    this.contents = columns.texts("content", files.count);
  }
  /** @type {KeptColumns["unpacked"]} */
  unpacked(name) {
    return this.columns.known.has(name) ? super.unpacked(name) : this.files.numbers(name);
  }
  // Addresses are stored as one more than they are, too.
  /** @type {(row: number) => string} */
  address(row) {
    const stored = this.columns.known.get("reason_address")?.[row];
    return stored ? address(BigInt(stored) - 1n) : NONE;
  }
}

// A list of what is known.
/** @type {(pairs: [title: string, value: string][]) => HTMLElement} */
export function facts(pairs) {
  const known = pairs.filter(([, value]) => value && value !== NONE && value !== "0 bytes");
  const items = known.map(([title, value]) => {
    const item = termAndValue(title, html("bdi", {}, value));
    if (value.length > LONG_VALUE) item.className = "long";
    return item;
  });
  return html("dl", {class: "facts"}, items);
}
/** @type {(title: string, ...children: Children[]) => HTMLElement} */
export const part = (title, ...children) => html("section", {}, html("h3", {}, title), ...children);
