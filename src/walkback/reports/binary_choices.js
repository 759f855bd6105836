// Which functions the list can be asked for.
/** @import {Binary} from "./binary_data.js" */
import {KIND, LSDA, SIGNAL} from "./binary_data.js";
import {PROOF} from "./binary_proof.js";
import {sourceChoices} from "./binary_sources.js";

/** @typedef {[name: string, words: string, test: (index: number) => boolean]} Choice */

export class Choices {
  /** @param {Binary} binary */
  constructor(binary) {
    this.binary = binary;
    // Which functions have a frame pointer; made when it is asked for.
    /** @type {Uint8Array | null} */
    this.framedFlags = null;
  }

  /** @type {(version: number | null) => Choice[]} */
  of(version) {
    const binary = this.binary,
      reason = version ? binary.reason.get(version) : null;
    /** @type {(Choice | null | undefined | false)[]} */
    const choices = [
      ["all", binary.length === binary.counts.functions ? "All functions" : "All pieces", () => true],
      reason && ["lost", `Left out by V${version}`, (index) => reason[index] !== 0],
      binary.sframe?.compared && [
        "differs",
        `${binary.sframe.name} differs`,
        (index) => binary.stretches.verdicts[index] !== 0,
      ],
      ...sourceChoices(binary),
      ...this.ofProof(),
      ["framed", `CFA based on ${binary.register(binary.machine.fp)}`, (index) => this.framed()[index] !== 0],
      ["lsda", "With an exception table", (index) => (binary.flags[index] & LSDA) !== 0],
      ["signal", "Signal frames", (index) => (binary.flags[index] & SIGNAL) !== 0],
      ["repeats", "Repeating blocks", (index) => binary.block[index] !== 0],
    ];
    return choices.filter((choice) => Array.isArray(choice));
  }

  /** @type {() => Choice[]} */
  ofProof() {
    const {proof} = this.binary;
    if (!proof) return [];
    return [
      ["wrong", "With a wrong rule", (index) => proof.has(index, PROOF.WRONG)],
      ["unknown", "Unknown in part", (index) => proof.has(index, PROOF.UNKNOWN)],
      ["assumed", "Assumed in part", (index) => proof.has(index, PROOF.ASSUMED)],
    ];
  }

  // Which functions have a row whose CFA counts from the frame pointer.
  /** @type {() => Uint8Array} */
  framed() {
    if (this.framedFlags) return this.framedFlags;
    const binary = this.binary,
      fp = binary.machine.fp,
      framed = new Uint8Array(binary.length);
    const isFramed = binary.rules.map(([, , , cfa]) => cfa[0] === KIND.REGISTER && cfa[1] === fp);
    for (let index = 0; index < binary.length; index++)
      for (let row = binary.rows.first[index]; row < binary.rows.first[index + 1] && !framed[index]; row++)
        if (isFramed[binary.rows.number[row]]) framed[index] = 1;
    return (this.framedFlags = framed);
  }
}
