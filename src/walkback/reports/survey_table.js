// Tables, each in a box of its own, which scrolls.
/** @import {Child} from "../pages/types.js" */
/** @import {Head} from "../pages/common.js" */
import {html, scrollBox, tableHead} from "../pages/common.js";

// The cells of each row are elements; people who listen hear the caption.
/** @type {(heads: Head[], rows: Child[][], caption: string) => HTMLElement} */
export function tableBox(heads, rows, caption) {
  const body = html(
    "tbody",
    {},
    rows.map((cells) => html("tr", {}, cells)),
  );
  const table = html("table", {}, html("caption", {class: "heard"}, caption), tableHead(heads), body);
  return scrollBox(`Table: ${caption}`, table);
}

// A table of texts; the first in each row is its head.
/** @type {(heads: Head[], rows: string[][], caption: string) => HTMLElement} */
export function textTable(heads, rows, caption) {
  /** @type {(text: string, place: number) => HTMLElement} */
  const cell = (text, place) => {
    const inner = html("bdi", {}, text);
    if (!place) return html("th", {scope: "row"}, inner);
    return html("td", {class: heads[place][1] ? "right" : null}, inner);
  };
  return tableBox(
    heads,
    rows.map((row) => row.map(cell)),
    caption,
  );
}
// Heads of columns of numbers, behind one without a title.
/** @type {(...titles: string[]) => Head[]} */
export const numberHeads = (...titles) => [["", false], ...titles.map((title) => /** @type {Head} */ ([title, true]))];
