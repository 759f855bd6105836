// Values as people read them.
/** @import {Column} from "./types.js" */
import {NONE, bytes, count, known, percent, ratio} from "../pages/common.js";

/** @type {(value: any, column: Column) => string} */
export function inWords(value, column) {
  if (!known(value)) return NONE;
  switch (column.unit) {
    case "count":
      return count(value);
    case "bytes":
      return bytes(value);
    case "share":
      return percent(value);
    case "ratio":
      return ratio(value);
    case "address":
      return value;
    default:
      return column.words[value] ?? String(value);
  }
}
// Where a figure has a column; -1 if it has none of that name.
/** @type {(figure: {columns: Column[]}, name: string | null) => number} */
export const columnOf = ({columns}, name) => columns.findIndex((column) => column.name === name);
export const VERSIONS = [1, 2, 3];
export const NUMBERS = new Set(["count", "bytes", "share", "ratio", "address"]);

// A path as its last name, and where that is; members stand in brackets.
/** @type {(path: string) => [name: string, place: string]} */
export function nameAndPlace(path) {
  const inside = path.replace(/\)+$/, ""),
    member = inside.length < path.length;
  const cut = Math.max(inside.lastIndexOf("/"), member ? inside.lastIndexOf("(") : -1);
  const folder = inside.slice(0, cut + 1).replace(/[/(]$/, "");
  return [inside.slice(cut + 1), member ? folder.replaceAll("(", " \u203a ") : folder];
}
// A number and its unit stay on one line.
/** @type {(text: string) => string} */
export const prose = (text) => text.replace(/(\d) (?=%|bytes|[KMGTP]iB)/g, "$1\u00a0");
