// Weights, shares and frames in words.
/** @import {FlameData, FlameTree} from "./types.js" */
import {KINDS} from "./flamegraph_colours.js";
import {changeOf} from "./flamegraph_tree.js";

/** @type {[size: number, unit: string][]} */
const TIME_UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "\u00b5s"],
];

/** @type {(part: number, whole: number) => string} */
export const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(2)} %` : "-");

/** @type {(weight: number, unit: string) => string} */
export function amount(weight, unit) {
  if (unit === "nanoseconds") {
    const [size, word] = TIME_UNITS.find(([least]) => weight >= least) ?? [1, "ns"];
    return `${(weight / size).toLocaleString("en", {maximumFractionDigits: 3})} ${word}`;
  }
  return `${weight.toLocaleString("en")} ${weight === 1 ? unit.replace(/s$/, "") : unit}`;
}

// Whether a text has what is wanted. What is no regular expression is looked for as it is.
/** @type {(wanted: string) => (text: string) => boolean} */
export function testFor(wanted) {
  try {
    const pattern = new RegExp(wanted, "i");
    return (text) => pattern.test(text);
  } catch {
    return (text) => text.toLowerCase().includes(wanted.toLowerCase());
  }
}

// What is known of a frame besides its name.
/**
 * @param {FlameData} data
 * @param {FlameTree} tree
 * @param {number} node
 * @param {{zoom: number, isOld: boolean, isInverted: boolean}} view
 */
export function wordsOf(data, tree, node, {zoom, isOld, isInverted}) {
  const name = tree.name[node],
    whole = tree.total[0],
    module = data.modules[data.module[name]];
  const words = [`${amount(tree.total[node], data.unit)}, ${share(tree.total[node], whole)} of all`];
  if (tree.was) {
    const moved = 100 * changeOf(tree, node, isOld);
    words.push(`${isOld ? "after" : "before"} ${share(tree.was[node], tree.was[0])}`);
    words.push(`${moved < 0 ? "\u2212" : "+"}${Math.abs(moved).toFixed(2)} points`);
  }
  // Nodes below another have higher numbers, and of those above it all are lower.
  if (zoom && node > zoom) words.push(`${share(tree.total[node], tree.total[zoom])} of the zoomed part`);
  if (!isInverted && tree.own[node]) words.push(`${amount(tree.own[node], data.unit)} in itself`);
  if (node && data.kind[name]) words.push(KINDS[data.kind[name]]);
  if (module) words.push(module);
  return words.join(" \u00b7 ");
}
