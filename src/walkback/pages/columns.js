// What `Columns` of columns.py has packed into an element.
/** @import {Described, Numbers} from "./types.js" */
import {byId} from "./common.js";

const ALIGNMENT = 8;
const WORD_BITS = 64;
const ARRAYS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, u8: BigUint64Array};

/** @type {(id: string) => Promise<ArrayBuffer>} */
export async function inflated(id) {
  const element = byId(id),
    text = atob(element.textContent),
    data = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) data[place] = text.charCodeAt(place);
  element.remove();
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The columns by name. Every machine that browsers run on is little-endian, as they are.
export class Columns {
  /** @param {Described} described @param {ArrayBuffer} buffer */
  constructor(described, buffer) {
    let place = 0;
    /** @type {Map<string, Uint8Array<ArrayBuffer> | Uint16Array | Uint32Array | BigUint64Array>} */
    this.known = new Map();
    for (const [name, kind, length] of described) {
      const Numbered = kind === "t" ? Uint8Array : ARRAYS[kind];
      this.known.set(name, new Numbered(buffer, place, length / Numbered.BYTES_PER_ELEMENT));
      place += Math.ceil(length / ALIGNMENT) * ALIGNMENT;
    }
  }
  // Numbers; those above 2 to the power of 53 are near what they were.
  /** @type {(name: string) => Numbers} */
  numbers(name) {
    const column = this.known.get(name) ?? new Uint8Array(0);
    return column instanceof BigUint64Array ? Float64Array.from(column, Number) : column;
  }
  /** @type {(name: string, count: number) => string[]} */
  texts(name, count) {
    return count ? new TextDecoder().decode(this.known.get(name)).split("\n") : [];
  }
  // Addresses, stored as steps from one to the next, in zigzag: 0, -1, 1, -2 and so on.
  /** @type {(name: string) => BigUint64Array} */
  addresses(name) {
    const steps = this.known.get(name) ?? new Uint8Array(0),
      addresses = new BigUint64Array(steps.length);
    let last = 0n;
    for (let place = 0; place < steps.length; place++) {
      const step = BigInt(steps[place]);
      addresses[place] = last + ((step >> 1n) ^ -(step & 1n));
      // The array keeps 64 bits of it.
      last = addresses[place];
    }
    return addresses;
  }
  /** @type {(name: string) => Float64Array} */
  signed(name) {
    return Float64Array.from(this.addresses(name), (value) => Number(BigInt.asIntN(WORD_BITS, value)));
  }
}

// Columns that are unpacked when they are asked for first; of words there are numbers.
export class KeptColumns {
  /** @param {Columns} columns @param {Record<string, string[]>} words */
  constructor(columns, words) {
    this.columns = columns;
    this.words = words;
    /** @type {Map<string, Numbers>} */
    this.kept = new Map();
  }
  /** @type {(name: string) => Numbers} */
  numbers(name) {
    const column = this.kept.get(name) ?? this.unpacked(name);
    this.kept.set(name, column);
    return column;
  }
  /** @type {(name: string) => Numbers} */
  unpacked(name) {
    return this.columns.numbers(name);
  }
  // What is known is stored as one more than it is.
  /** @type {(name: string, row: number) => number | null} */
  number(name, row) {
    const stored = this.numbers(name)[row];
    return stored ? stored - 1 : null;
  }
  /** @type {(name: string, row: number) => string} */
  word(name, row) {
    return this.words[name][this.numbers(name)[row]];
  }
}

// Where each of some lists begins that stand one after the other, and where the last ends.
/** @type {(counts: ArrayLike<number>) => Uint32Array} */
export const sums = (counts) => {
  const starts = new Uint32Array(counts.length + 1);
  for (let place = 0; place < counts.length; place++) starts[place + 1] = starts[place] + counts[place];
  return starts;
};
