// The table of functions: what `top` prints of one choice of samples, and `diff` of two.
/** @import {ChangedFunction, HotFunction, StacksAnswer} from "./types.js" */
/** @import {Head} from "../pages/common.js" */
import {testFor} from "../export/flamegraph_words.js";
import {byId, counted, html, tableHead} from "../pages/common.js";

/** @type {Head[]} */
const OF_ONE = [
  ["function", false],
  ["self", true],
  ["%", true],
  ["total", true],
  ["%", true],
  ["file", false],
];
/** @type {Head[]} */
const OF_TWO = [
  ["function", false],
  ["self % before", true],
  ["after", true],
  ["change", true],
  ["total % before", true],
  ["after", true],
  ["change", true],
  ["file", false],
];
const EIGHTHS = 8;

// Two digits as the command rounds: what is half-way between two goes to the even one, and only odd eighths are.
/** @type {(value: number) => string} */
function twoDigits(value) {
  const size = Math.abs(value),
    goesDown = (size * EIGHTHS) % 4 === 1;
  const digits = (goesDown ? size - 1 / EIGHTHS + 0.12 : size).toFixed(2);
  return value < 0 ? `-${digits}` : digits;
}

/** @type {(part: number, whole: number) => number} */
const share = (part, whole) => (whole ? part / whole : 0);

/** @type {(one: HotFunction, whole: number) => string[]} */
const cellsOfOne = ({own, total}, whole) =>
  [own, total].flatMap((part) => [String(part), whole ? twoDigits((100 * part) / whole) : "-"]);

/** @type {(one: ChangedFunction, before: number, after: number) => string[]} */
const cellsOfTwo = (one, before, after) =>
  [
    [one.own_before, one.own_after],
    [one.total_before, one.total_after],
  ].flatMap(([was, is]) => {
    const old = 100 * share(was, before),
      now = 100 * share(is, after);
    return [twoDigits(old), twoDigits(now), `${now - old < 0 ? "" : "+"}${twoDigits(now - old)}`];
  });

/** @type {(path: string) => string} */
const baseName = (path) => path.replace(/\/+$/, "").split("/").pop() || path;

/** @type {(name: string) => void} */
function searchFor(name) {
  const input = /** @type {HTMLInputElement} */ (byId("search"));
  input.value = `^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
  input.dispatchEvent(new Event("input"));
}

// Leave out the rows in which nothing is that is looked for.
export function filterFunctions() {
  const wanted = /** @type {HTMLInputElement} */ (byId("search")).value.trim(),
    test = testFor(wanted);
  for (const row of byId("functions").querySelectorAll("tbody tr"))
    /** @type {HTMLElement} */ (row).hidden = Boolean(wanted) && !test(row.querySelector("button")?.textContent ?? "");
}

/** @type {(answer: StacksAnswer) => void} */
export function showFunctions({functions, all, whole, before = 0, after = 0}) {
  const rows = functions.map((one) => {
    const cells = "own" in one ? cellsOfOne(one, whole ?? 0) : cellsOfTwo(one, before, after);
    return html(
      "tr",
      {},
      html("th", {scope: "row"}, html("button", {type: "button", onclick: () => searchFor(one.name)}, one.name)),
      cells.map((text) => html("td", {class: "right"}, text)),
      html("td", {}, baseName(one.module)),
    );
  });
  const more = all - functions.length;
  byId("functions").replaceChildren(
    html(
      "table",
      {"aria-label": "Functions"},
      tableHead(whole === undefined ? OF_TWO : OF_ONE),
      html("tbody", {}, rows),
    ),
    ...(more > 0 ? [html("p", {}, `and ${counted(more, "function")} more`)] : []),
  );
  filterFunctions();
}

export function showNoFunctions() {
  byId("functions").replaceChildren();
}
