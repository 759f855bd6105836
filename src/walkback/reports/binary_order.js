// In which order functions are listed, and which is shown first: those with a name come before those without.
/** @import {Binary} from "./binary_data.js" */

/** @type {(binary: Binary, index: number) => boolean} */
export const isNamed = (binary, index) => binary.symbols[index] !== "";

// By address, those with a name first.
/** @type {(binary: Binary) => Uint32Array<ArrayBuffer>} */
export function namedFirst(binary) {
  const all = Array.from({length: binary.length}, (_, index) => index);
  return Uint32Array.from([
    ...all.filter((index) => isNamed(binary, index)),
    ...all.filter((index) => !isNamed(binary, index)),
  ]);
}

// What a reader wants to see first: main, or the function with the most rows; -1 if there is none.
/** @type {(binary: Binary) => number} */
export function shownFirst(binary) {
  const main = binary.symbols.indexOf("main");
  if (main >= 0 || !binary.length) return main;
  /** @type {(index: number) => number} */
  const rank = (index) => (isNamed(binary, index) ? binary.rows.total : 0) + binary.rows.count(index);
  return namedFirst(binary).reduce((most, index) => (rank(index) > rank(most) ? index : most));
}
