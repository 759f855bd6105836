// Columns of things at rising offsets, some for each function, as `stepping` of columns.py stores them.
/** @import {Columns} from "../pages/columns.js" */
import {sums} from "../pages/columns.js";
import {firstThat} from "../pages/common.js";

// Each has a number.
export class Offsets {
  /** @param {Columns} columns @param {string} name @param {number} functions */
  constructor(columns, name, functions) {
    const count = columns.numbers(`${name}Count`),
      steps = columns.numbers(`${name}Step`);
    this.first = count.length ? sums(count) : new Uint32Array(functions + 1);
    this.number = columns.numbers(`${name}Number`);
    this.total = this.number.length;
    this.offset = steps instanceof Float64Array ? new Float64Array(steps.length) : new Uint32Array(steps.length);
    for (let owner = 0; owner < count.length; owner++)
      for (let at = this.first[owner], sum = 0; at < this.first[owner + 1]; at++) this.offset[at] = sum += steps[at];
  }
  /** @type {(index: number) => number} */
  count(index) {
    return this.first[index + 1] - this.first[index];
  }
  // The last at or before an offset; -1 if there is none.
  /** @type {(index: number, offset: number) => number} */
  at(index, offset) {
    const first = this.first[index],
      next = firstThat(first, this.first[index + 1], (place) => this.offset[place] > offset);
    return next > first ? next - 1 : -1;
  }
}
