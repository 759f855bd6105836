// What `Columns` of columns.py has packed into an element.
/** @import {Described, Numbers} from "./types.js" */
import {byId} from "./common.js";

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
    const arrays = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, u8: BigUint64Array};
    let place = 0;
    /** @type {Map<string, Uint8Array<ArrayBuffer> | Uint16Array | Uint32Array | BigUint64Array>} */
    this.known = new Map();
    for (const [name, kind, length] of described) {
      const its = kind === "t" ? null : arrays[kind];
      this.known.set(
        name,
        its ? new its(buffer, place, length / its.BYTES_PER_ELEMENT) : new Uint8Array(buffer, place, length),
      );
      place += Math.ceil(length / 8) * 8;
    }
  }
  // Numbers; those above 2 to the power of 53 are near what they were.
  /** @type {(name: string) => Numbers} */
  numbers(name) {
    const its = this.known.get(name) ?? new Uint8Array(0);
    return its instanceof BigUint64Array ? Float64Array.from(its, Number) : its;
  }
  /** @type {(name: string, count: number) => string[]} */
  texts(name, count) {
    return count ? new TextDecoder().decode(this.known.get(name)).split("\n") : [];
  }
  // Addresses, stored as steps from one to the next.
  /** @type {(name: string) => BigUint64Array} */
  addresses(name) {
    const steps = this.known.get(name) ?? new Uint8Array(0),
      its = new BigUint64Array(steps.length);
    let last = 0n;
    for (let place = 0; place < steps.length; place++) {
      const step = BigInt(steps[place]);
      last += (step >> 1n) ^ -(step & 1n);
      its[place] = last;
      last = its[place];
    }
    return its;
  }
  /** @type {(name: string) => Float64Array} */
  signed(name) {
    return Float64Array.from(this.addresses(name), (value) => Number(BigInt.asIntN(64, value)));
  }
}

/** @type {(counts: ArrayLike<number>) => Uint32Array} */
export const sums = (counts) => {
  const its = new Uint32Array(counts.length + 1);
  for (let place = 0; place < counts.length; place++) its[place + 1] = its[place] + counts[place];
  return its;
};
