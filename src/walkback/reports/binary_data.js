// The file that a page is about: its functions as columns, and what is asked of them. Addresses have 64 bits and are
// BigInts; offsets and sizes are numbers.
/** @import {Numbers} from "../pages/types.js" */
/** @import {BinaryMeta, Part, Rule, Text, Version} from "./types.js" */
import {Columns, sums} from "../pages/columns.js";
import {addTo, firstThat, hexadecimal} from "../pages/common.js";
import {Offsets} from "./binary_offsets.js";
import {Proof} from "./binary_proof.js";

export const KIND = {UNCHANGED: 0, UNDEFINED: 1, REGISTER: 2, AT_REGISTER: 3, CFA: 4, AT_CFA: 5, INEXPRESSIBLE: 6};
export const VERDICT = {NEITHER: 0, EQUAL: 1, DIFFERENT: 2, ONLY_FRAMES: 3, ONLY_SFRAME: 4};
export const SIGNAL = 1;
export const KEY_B = 2;
export const LSDA = 4;

const ADDRESS_LETTERS = {least: 8, most: 24, sampled: 9999};

// Code for which .sframe and call frame information differ.
class Stretches {
  /** @param {Columns} columns @param {number} functions */
  constructor(columns, functions) {
    this.start = columns.addresses("stretchStart");
    this.size = columns.numbers("stretchSize");
    this.verdict = columns.numbers("stretchVerdict");
    this.function = columns.numbers("stretchFunction");
    // The rule of call frame information, and that of .sframe, by number; 0 stands for none.
    this.framesRule = columns.numbers("stretchOne");
    this.sframeRule = columns.numbers("stretchOther");
    this.marks = columns.numbers("stretchMarks");
    this.section = columns.numbers("stretchSection");
    /** @type {Map<number, number[]>} */
    this.byFunction = new Map();
    // What belongs to no function.
    /** @type {number[]} */
    this.outside = [];
    // All verdicts about functions; and those about each function, as bits.
    /** @type {Set<number>} */
    this.allVerdicts = new Set();
    this.verdicts = new Uint8Array(functions);
    this.group();
  }

  // Give each function its stretches.
  group() {
    for (let stretch = 0; stretch < this.start.length; stretch++) {
      const owner = this.function[stretch] - 1,
        verdict = this.verdict[stretch];
      if (owner < 0) {
        this.outside.push(stretch);
        continue;
      }
      if (verdict !== VERDICT.NEITHER) this.verdicts[owner] |= 1 << verdict;
      this.allVerdicts.add(verdict);
      addTo(this.byFunction, owner, stretch);
    }
  }
}

export class Binary {
  /** @param {BinaryMeta} meta @param {ArrayBuffer} buffer */
  constructor(meta, buffer) {
    this.file = meta.file;
    this.kind = meta.kind;
    this.buildId = meta.buildId;
    this.origin = meta.origin;
    this.fileBytes = meta.fileBytes;
    this.textBytes = meta.textBytes;
    this.relocatable = meta.relocatable;
    this.machine = meta.machine;
    this.tables = meta.source;
    this.sources = meta.sources;
    this.chosen = meta.chosen;
    this.frames = meta.frames;
    this.counts = meta.counts;
    this.unplaced = meta.unplaced;
    this.versions = meta.versions;
    this.sframe = meta.sframe;
    this.unreadable = meta.unreadable;
    this.rules = meta.rules;
    this.saved = meta.saved;
    const columns = new Columns(meta.columns, buffer);
    // The functions.
    this.start = columns.addresses("start");
    this.length = this.start.length;
    this.size = columns.numbers("size");
    this.text = columns.numbers("text");
    this.flags = columns.numbers("flags");
    this.source = columns.numbers("source");
    this.block = columns.numbers("block");
    this.fde = columns.numbers("fde");
    this.fdeBytes = columns.numbers("fdeBytes");
    this.fdePosition = columns.signed("fdePosition");
    this.symbols = columns.texts("symbols", this.length);
    this.names = columns.texts("names", this.length);
    // By version: what each function takes, and the number of the reason that it is not covered.
    /** @type {Map<number, Numbers>} */
    this.cost = new Map();
    /** @type {Map<number, Numbers>} */
    this.reason = new Map();
    for (const {version, impossible} of this.versions) {
      if (impossible) continue;
      this.cost.set(version, columns.numbers(`bytes${version}`));
      this.reason.set(version, columns.numbers(`reason${version}`));
    }
    this.rows = new Offsets(columns, "row", this.length);
    // Sets of rules of other registers, and the rules.
    this.sets = new Offsets(columns, "set", this.length);
    this.setFirst = sums(columns.numbers("setEntries"));
    this.setRegister = columns.numbers("setRegister");
    this.setKind = columns.numbers("setKind");
    this.setBase = columns.numbers("setBase");
    this.setOffset = columns.signed("setOffset");
    this.stretches = new Stretches(columns, this.length);
    // What the code proves of the table; null where the proof failed, for which there is a reason.
    this.proof = meta.proof.missing === null ? new Proof(meta.proof, columns, this.length) : null;
    this.unproved = meta.proof.missing;
    // The line on which all stretches of code stand one after the other, and functions' places on it.
    this.texts = textsOf(meta.line);
    const last = this.texts.at(-1);
    this.lineLength = last ? last.x + last.size || 1 : 1;
    this.x = new Float64Array(this.length);
    this.xEnd = new Float64Array(this.length);
    this.layOut();
  }

  layOut() {
    for (let index = 0; index < this.length; index++) {
      const text = this.texts[this.text[index]];
      this.x[index] = text.x + Number(this.start[index] - text.start);
      // What claims to go on behind its section is drawn up to there.
      this.xEnd[index] = Math.min(this.x[index] + this.size[index], text.x + text.size);
    }
  }

  /** @type {(index: number) => string} */
  name(index) {
    return this.names[index] || this.symbols[index] || this.place(this.start[index], this.text[index]);
  }
  /** @type {(index: number) => string} */
  sectionOf(index) {
    return this.texts[this.text[index]].name;
  }
  // A place in the code: an address, or in object files section and offset.
  /** @type {(where: bigint, text: number) => string} */
  place(where, text) {
    return this.relocatable ? `${this.texts[text].name || "?"}+${hexadecimal(where)}` : hexadecimal(where);
  }
  /** @type {(index: number, offset: number) => string} */
  placeIn(index, offset) {
    return this.place(this.start[index] + BigInt(Math.round(offset)), this.text[index]);
  }

  // How wide a column of addresses is, in letters.
  addressLetters() {
    /** @type {(text: Text, place: number) => string} */
    const end = (text, place) => this.place(text.start + BigInt(Math.round(text.size)), place);
    const {least, most, sampled} = ADDRESS_LETTERS;
    const lengths = this.texts.slice(0, sampled).map((text, place) => end(text, place).length);
    return Math.min(most, Math.max(least, ...lengths) + 1);
  }

  // The function that begins last at or before a place on the line; -1 if there is none.
  /** @type {(x: number) => number} */
  before(x) {
    return firstThat(0, this.length, (index) => this.x[index] > x) - 1;
  }
  // The functions, with the offset in each, that hold an address; in object files there can be several.
  /** @type {(where: bigint) => [index: number, offset: number][]} */
  at(where) {
    /** @type {[index: number, offset: number][]} */
    const holders = [];
    for (const text of this.texts) {
      const away = where - text.start;
      if (away < 0n || away >= BigInt(Math.round(text.size))) continue;
      const index = this.before(text.x + Number(away));
      if (index < 0) continue;
      const offset = where - this.start[index];
      const inside = offset >= 0n && Number(offset) < this.size[index];
      if (inside && this.texts[this.text[index]] === text) holders.push([index, Number(offset)]);
    }
    return holders;
  }

  // What holds at an offset of a function: its row, -1 for none; rows of a repeating block come again.
  /** @type {(index: number, offset: number) => number} */
  rowAt(index, offset) {
    return this.rows.at(index, this.block[index] ? offset % this.block[index] : offset);
  }
  // The offset at which a row of a function ends.
  /** @type {(index: number, row: number) => number} */
  rowEnd(index, row) {
    const last = row + 1 === this.rows.first[index + 1];
    return last ? this.block[index] || this.size[index] : this.rows.offset[row + 1];
  }
  /** @type {(row: number) => Rule} */
  rule(row) {
    return this.rules[this.rows.number[row]];
  }
  // The rules of other registers there: [register, [kind, base, offset]].
  /** @type {(index: number, offset: number) => [register: number, where: Part][]} */
  savedAt(index, offset) {
    const at = this.sets.at(index, offset);
    /** @type {[register: number, where: Part][]} */
    const rules = [];
    if (at < 0) return rules;
    const set = this.sets.number[at];
    for (let entry = this.setFirst[set]; entry < this.setFirst[set + 1]; entry++)
      rules.push([this.setRegister[entry], [this.setKind[entry], this.setBase[entry], this.setOffset[entry]]]);
    return rules;
  }
  /** @type {(number: number) => string} */
  register(number) {
    return this.machine.registers[number] ?? `r${number}`;
  }
  /** @type {(index: number, version: number) => [code: string, words: string] | null} */
  reasonOf(index, version) {
    const column = this.reason.get(version);
    return column && column[index] ? this.versionOf(version).reasons[column[index]] : null;
  }
  /** @type {(version: number) => Version} */
  versionOf(version) {
    return /** @type {Version} */ (this.versions.find((candidate) => candidate.version === version));
  }
}

// Stretches of code with their places on the line.
/** @type {(line: BinaryMeta["line"]) => Text[]} */
function textsOf(line) {
  let end = 0;
  return line.map(([name, start, size]) => {
    const x = end;
    end += size;
    return {name, start: BigInt(start), size, x};
  });
}
