// The instructions of a function: what each is, the table's rule, what the code has, and the verdict of the proof.
/** @import {ListColumn} from "./binary_list.js" */
/** @import {Child} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
/** @import {Proof} from "./binary_proof.js" */
import {count, hexadecimal, html} from "../pages/common.js";
import {quoted} from "./binary_foot.js";
import {LongTable} from "./binary_list.js";
import {PROOF} from "./binary_proof.js";
import {ruleParts} from "./binary_rules.js";

const TITLE = "Instructions";

export class Instructions {
  // `chosen(offset)` is called when somebody chooses an instruction.
  /** @param {Binary} binary @param {Proof} proof @param {(offset: number) => void} chosen */
  constructor(binary, proof, chosen) {
    this.binary = binary;
    this.proof = proof;
    this.index = -1;
    this.title = html("h4", {}, TITLE);
    this.missing = html("p", {class: "quiet"});
    this.list = new LongTable({
      label: "Instructions of the function",
      id: "instructions",
      columns: INSTRUCTION_COLUMNS,
      cells: (row) => this.cells(row),
      chosen: (row) => chosen(proof.code.offset[proof.code.first[this.index] + row]),
    });
    this.list.element.style.setProperty("--address", `${binary.relocatable ? LETTERS : binary.addressLetters()}ch`);
    this.element = html("div", {}, this.title, this.missing, this.list.element);
  }

  /** @type {(index: number) => void} */
  show(index) {
    this.index = index;
    const number = this.proof.code.count(index);
    this.list.element.hidden = number === 0;
    this.missing.hidden = number !== 0;
    this.missing.replaceChildren(...this.missingWords());
    this.list.show(number, -1);
  }

  // Mark the instruction at an offset.
  /** @type {(offset: number) => void} */
  mark(offset) {
    const at = this.proof.code.at(this.index, offset);
    this.list.mark(at < 0 ? -1 : at - this.proof.code.first[this.index]);
  }

  /** @type {(most: number) => void} */
  print(most) {
    const all = this.list.count;
    this.title.textContent = most && most < all ? `${TITLE}: the first ${count(most)} of ${count(all)}` : TITLE;
    this.list.print(most);
  }

  // Which command prints the instructions that are not here: of objects by name, because addresses repeat.
  /** @type {() => (string | Node)[]} */
  missingWords() {
    const {binary, index} = this;
    if (this.proof.has(index, PROOF.NOT_JUDGED)) return ["The proof reaches no instruction here."];
    const [name] = binary.symbols[index].split("+0x"),
      wanted = binary.relocatable ? name && quoted(name) : hexadecimal(binary.start[index]);
    if (!wanted) return ["They are not in this page."];
    const command = `walkback verify ${quoted(binary.file)} --explain ${wanted}`;
    return ["They are not in this page; ", html("code", {}, command), " prints them."];
  }

  /** @type {(row: number) => Child[]} */
  cells(row) {
    const {binary, index, proof} = this,
      at = proof.code.first[index] + row,
      offset = proof.code.offset[at];
    const text = proof.texts[proof.code.number[at]],
      computed = proof.meta.computed[proof.computed[at]];
    const {word, cause, mark} = proof.worst(index, offset, offset + 1),
      verdict = cause ? `${word}: ${cause}` : word;
    return [
      binary.relocatable ? `+${hexadecimal(offset)}` : binary.placeIn(index, offset),
      html("span", {title: text}, text),
      this.ruleCell(row, offset),
      html("span", {class: mark === "bad" ? mark : "", title: computed}, computed),
      html("span", {class: mark, title: verdict}, verdict),
    ];
  }

  // What the rule has that the one of the instruction before it has not.
  /** @type {(row: number, offset: number) => Child} */
  ruleCell(row, offset) {
    const {binary, index, proof} = this,
      parts = ruleParts(binary, index, offset);
    const before = row ? ruleParts(binary, index, proof.code.offset[proof.code.first[index] + row - 1]) : [];
    const changed = parts.filter((part) => !before.includes(part) && (row || !part.endsWith(" unchanged")));
    const gone = before
      .filter((part) => !parts.some((other) => nameOf(other) === nameOf(part)))
      .map((part) => `${nameOf(part)} unchanged`);
    return html("span", {title: parts.join(", ")}, [...changed, ...gone].join(", "));
  }
}

/** @type {ListColumn[]} */
const INSTRUCTION_COLUMNS = [
  {title: "Address", className: "from number mono"},
  {title: "Instruction", className: "text mono"},
  {title: "New rule", className: "rule mono"},
  {title: "The code has", className: "computed mono"},
  {title: "Verdict", className: "proof"},
];
const LETTERS = 7; // Of an offset.

/** @type {(part: string) => string} */
const nameOf = (part) => part.split(" ")[0];
