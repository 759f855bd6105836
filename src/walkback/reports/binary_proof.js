// What the machine code proves of the table: verdicts along the code, and the instructions that the page has.
/** @import {Columns} from "../pages/columns.js" */
/** @import {ProofMeta} from "./types.js" */
import {bytes} from "../pages/common.js";
import {Offsets} from "./binary_offsets.js";

export const PROOF = {NOT_JUDGED: 0, PROVED: 1, WRONG: 2, ASSUMED: 3, UNKNOWN: 4};
// From bad to good, each with its word and its mark.
/** @type {[verdict: number, word: string, mark: string][]} */
export const PROOF_WORDS = [
  [PROOF.WRONG, "wrong", "bad"],
  [PROOF.UNKNOWN, "unknown", "warn"],
  [PROOF.ASSUMED, "assumed", "quiet"],
  [PROOF.NOT_JUDGED, "not judged", "quiet"],
  [PROOF.PROVED, "proved", "good"],
];

/** @typedef {{verdict: number, cause: string, bytes: number}} Judged */

export class Proof {
  /** @param {ProofMeta} meta @param {Columns} columns @param {number} functions */
  constructor(meta, columns, functions) {
    this.meta = meta;
    // Stretches that are not proved, whose numbers are those of `meta.causes`.
    this.runs = new Offsets(columns, "run", functions);
    this.runSize = columns.numbers("runSize");
    // Instructions of some functions, with the numbers of their texts, and what the code has where that changes.
    this.code = new Offsets(columns, "code", functions);
    this.texts = columns.texts("codeTexts", this.code.total);
    this.computed = columns.numbers("codeComputed");
    // The verdicts on each function and on all, as bits.
    this.verdicts = new Uint8Array(functions);
    this.all = 0;
    for (let index = 0; index < functions; index++) {
      for (let run = this.runs.first[index]; run < this.runs.first[index + 1]; run++)
        this.verdicts[index] |= 1 << this.verdictOf(run);
      this.all |= this.verdicts[index];
    }
    if (meta.proved) this.all |= 1 << PROOF.PROVED;
  }

  /** @type {(run: number) => number} */
  verdictOf(run) {
    return this.meta.causes[this.runs.number[run]][0];
  }
  /** @type {(index: number, verdict: number) => boolean} */
  has(index, verdict) {
    return (this.verdicts[index] & (1 << verdict)) !== 0;
  }

  // What is not proved from one offset of a function to another: bytes by verdict and cause, the worst first.
  /** @type {(index: number, from?: number, to?: number) => Judged[]} */
  judged(index, from = 0, to = Infinity) {
    /** @type {Map<number, Judged>} */
    const found = new Map();
    for (let run = this.runs.first[index]; run < this.runs.first[index + 1]; run++) {
      const begin = this.runs.offset[run],
        size = Math.min(to, begin + this.runSize[run]) - Math.max(from, begin);
      if (size <= 0) continue;
      const number = this.runs.number[run],
        [verdict, cause] = this.meta.causes[number];
      found.set(number, {verdict, cause, bytes: size + (found.get(number)?.bytes ?? 0)});
    }
    return [...found.values()].sort((one, other) => rank(one.verdict) - rank(other.verdict));
  }

  // The worst verdict from one offset to another, as a word with its cause, and as a mark.
  /** @type {(index: number, from: number, to: number) => {word: string, cause: string, mark: string}} */
  worst(index, from, to) {
    const [first] = this.judged(index, from, to);
    const [, word, mark] = PROOF_WORDS[rank(first ? first.verdict : PROOF.PROVED)];
    return {word, cause: first ? causeText(first) : "", mark};
  }

  // What there is to say of a whole function.
  /** @type {(index: number) => string} */
  summary(index) {
    const found = this.judged(index);
    if (!found.length) return "proved at every instruction";
    return found
      .map((one) => {
        const [, word] = PROOF_WORDS[rank(one.verdict)],
          cause = causeText(one);
        return `${cause ? `${word}: ${cause}` : word} (${bytes(one.bytes)})`;
      })
      .join(", ");
  }
  // The mark of a whole function.
  /** @type {(index: number) => string} */
  markOf(index) {
    return this.worst(index, 0, Infinity).mark;
  }
}

/** @type {(verdict: number) => number} */
const rank = (verdict) => PROOF_WORDS.findIndex(([other]) => other === verdict);
/** @type {(judged: Judged) => string} */
const causeText = ({cause}) => (["cfa", "ra", "fp"].includes(cause) ? cause.toUpperCase() : cause);
