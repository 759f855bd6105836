// A table in a box of its own, which scrolls.
/** @import {Child} from "../pages/types.js" */
import {html} from "../pages/common.js";

/** @typedef {[title: string, right: boolean]} Head A column's title, and whether its values stand to the right. */

// The cells of each row are elements; people who listen hear the caption.
/** @type {(heads: Head[], rows: Child[][], caption: string) => HTMLElement} */
export function tableBox(heads, rows, caption) {
  const titles = heads.map(([title, right]) => html("th", {scope: "col", class: right ? "right" : null}, title));
  const head = html("thead", {}, html("tr", {}, titles));
  const body = html(
    "tbody",
    {},
    rows.map((cells) => html("tr", {}, cells)),
  );
  return html(
    "div",
    {class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}`},
    html("table", {}, html("caption", {class: "heard"}, caption), head, body),
  );
}
