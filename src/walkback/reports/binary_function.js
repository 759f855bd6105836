// The part of the page about one function: its numbers, its rows, and its frame at a chosen address.
/** @import {ListColumn} from "./binary_list.js" */
/** @import {Child} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
/** @import {Proof} from "./binary_proof.js" */
/** @import {Part} from "./types.js" */
import {NONE, bytes, clamped, count, hexadecimal, html, termAndValue} from "../pages/common.js";
import {KEY_B, KIND, LSDA, SIGNAL, VERDICT} from "./binary_data.js";
import {differencesOf} from "./binary_differences.js";
import {frameDrawing} from "./binary_frame.js";
import {Instructions} from "./binary_instructions.js";
import {LongTable} from "./binary_list.js";
import {Profile} from "./binary_profile.js";
import {partText, whyInexpressible} from "./binary_rules.js";
import {hasSeveral, sourceWords, tableName} from "./binary_sources.js";

/** @type {Record<string, number>} */
const INSTRUCTION_STEP = {AArch64: 4, s390x: 2};

/** @typedef {[term: string, text: string, mark?: string]} Fact */

export class FunctionPanel {
  /** @param {Binary} binary @param {HTMLElement} element */
  constructor(binary, element) {
    this.binary = binary;
    this.element = element;
    this.index = -1;
    this.offset = 0;
    // The section that is compared, if one is.
    this.compared = binary.sframe?.compared ? binary.sframe : null;
    // Called with the address whenever another one is shown.
    /** @type {((place: string) => void) | null} */
    this.moved = null;
    this.title = html("h3", {id: "function-name"});
    this.facts = html("div", {});
    this.where = html("output", {class: "where mono", for: "offset"});
    this.slider = html("input", {
      type: "range",
      id: "offset",
      min: 0,
      "aria-label": "Address in the function",
      oninput: () => this.move(Number(this.slider.value)),
    });
    this.profile = new Profile(binary, (offset) => this.move(offset));
    this.frame = html("div", {});
    this.rows = new LongTable({
      label: "Rows of the function",
      id: "rows",
      columns: this.columns(),
      cells: (row) => this.cells(row),
      chosen: (row) => this.move(binary.rows.offset[binary.rows.first[this.index] + row]),
    });
    this.rowsTitle = html("h4", {}, "Rows");
    this.instructions = binary.proof && new Instructions(binary, binary.proof, (offset) => this.move(offset));
    this.differences = html("div", {});
    element.replaceChildren(
      this.title,
      this.facts,
      html("h4", {}, "The frame at an address"),
      this.profile.element,
      html("div", {class: "seek"}, this.slider, this.where),
      this.frame,
      this.rowsTitle,
      this.rows.element,
      this.instructions?.element ?? "",
      this.differences,
    );
  }

  /** @type {() => ListColumn[]} */
  columns() {
    const columns = [
      {title: "From", className: "from number mono"},
      {title: "CFA", className: "cfa mono"},
      {title: "RA", className: "ra mono"},
      {title: "FP", className: "fp mono"},
    ];
    if (this.binary.saved) columns.push({title: "Saved at its end", className: "saved mono"});
    if (this.compared) columns.push({title: ".sframe", className: "verdict"});
    if (this.binary.proof) columns.push({title: "Proof", className: "proof"});
    return columns;
  }

  /** @type {(row: number) => Child[]} */
  cells(row) {
    const {binary} = this,
      at = binary.rows.first[this.index] + row,
      offset = binary.rows.offset[at],
      end = binary.rowEnd(this.index, at);
    const [cfa, ra, fp, , , , isSigned] = binary.rule(at);
    const cells = [`+${hexadecimal(offset)}`, ruleCell(cfa), ruleCell(isSigned ? `${ra} signed` : ra), ruleCell(fp)];
    // Registers are saved while the three others stay as they are: what the row ends with says most.
    if (binary.saved) cells.push(this.savedCell(end - 1));
    if (this.compared) cells.push(this.verdictCell(offset, end));
    if (binary.proof) cells.push(this.proofCell(binary.proof, offset, end));
    return cells;
  }

  /** @type {(offset: number) => Child} */
  savedCell(offset) {
    const {binary} = this;
    /** @type {(saved: [register: number, where: Part]) => string} */
    const words = ([register, part]) => {
      const name = binary.register(register);
      return part[0] === KIND.AT_CFA ? name : `${name}: ${partText(binary, part)}`;
    };
    const text = binary.savedAt(this.index, offset).map(words).join(" ");
    return text ? html("span", {title: text}, text) : NONE;
  }

  /** @type {(from: number, to: number) => Child} */
  verdictCell(from, to) {
    const {verdict} = this.binary.stretches;
    const differs = this.stretchesIn(from, to).some((stretch) => verdict[stretch] !== VERDICT.NEITHER);
    return html("span", {class: differs ? "bad" : "good"}, differs ? "differs" : "same");
  }

  /** @type {(proof: Proof, from: number, to: number) => Child} */
  proofCell(proof, from, to) {
    // Rows of a repeating block stand for all its turns.
    const isRepeating = this.binary.block[this.index] !== 0;
    const {word, cause, mark} = proof.worst(this.index, isRepeating ? 0 : from, isRepeating ? Infinity : to);
    return html("span", {class: mark, title: cause && `${word}: ${cause}`}, word);
  }

  /** @type {(from: number, to: number) => number[]} */
  stretchesIn(from, to) {
    const binary = this.binary,
      block = binary.block[this.index];
    return (binary.stretches.byFunction.get(this.index) ?? []).filter((stretch) => {
      const begin = Number(binary.stretches.start[stretch] - binary.start[this.index]);
      // Rows of a repeating block stand for all its turns.
      return block !== 0 || (begin < to && begin + binary.stretches.size[stretch] > from);
    });
  }

  // Show a function at an offset, or where the row begins that holds for most of its code.
  /** @type {(index: number, offset?: number | null) => void} */
  show(index, offset = null) {
    this.index = index;
    const binary = this.binary,
      name = binary.name(index),
      symbol = binary.symbols[index];
    this.title.replaceChildren(name);
    this.facts.replaceChildren(
      symbol && symbol !== name ? html("p", {class: "symbol mono quiet"}, symbol) : "",
      html(
        "dl",
        {class: "facts"},
        this.factList().map(([term, text, mark]) => termAndValue(term, text, {class: mark})),
      ),
    );
    this.slider.max = String(Math.max(0, binary.size[index] - 1));
    this.slider.step = String(INSTRUCTION_STEP[binary.machine.name] ?? 1);
    this.profile.show(index);
    this.rows.show(binary.rows.count(index), -1);
    this.instructions?.show(index);
    this.differences.replaceChildren(...(this.compared ? differencesOf(binary, this.compared, index) : []));
    this.element.scrollTop = 0;
    this.move(offset ?? this.longest());
  }

  // Bring what is shown into sight, where it is not beside the list but below it.
  reveal() {
    this.title.scrollIntoView({block: "nearest"});
  }

  /** @type {(most: number) => void} */
  print(most) {
    const all = this.rows.count;
    this.rowsTitle.textContent = most && most < all ? `Rows: the first ${count(most)} of ${count(all)}` : "Rows";
    this.rows.print(most);
    this.instructions?.print(most);
  }

  // Where the row begins that holds for most of the code.
  longest() {
    const binary = this.binary,
      {rows} = binary;
    let longest = 0,
      most = 0;
    for (let at = rows.first[this.index]; at < rows.first[this.index + 1]; at++) {
      const size = binary.rowEnd(this.index, at) - rows.offset[at];
      if (size > most) [longest, most] = [rows.offset[at], size];
    }
    return longest;
  }

  /** @type {() => Fact[]} */
  factList() {
    const {binary, index} = this,
      section = binary.sectionOf(index),
      marks = this.marks();
    const place = binary.place(binary.start[index], binary.text[index]),
      end = binary.placeIn(index, binary.size[index]);
    /** @type {Fact[]} */
    const facts = [
      ["Address", `${place} to ${end}`],
      ["Code", bytes(binary.size[index])],
      ["Rows", count(binary.rows.count(index))],
    ];
    if (section && !binary.relocatable) facts.push(["Section", section]);
    if (binary.fdeBytes[index]) {
      const fde = `FDE ${count(binary.fde[index])} at +${hexadecimal(binary.fdePosition[index])}`;
      facts.push([tableName(binary, index), `${bytes(binary.fdeBytes[index])}, ${fde}`]);
    }
    if (hasSeveral(binary)) facts.push(["Rules from", sourceWords(binary, index)]);
    facts.push(...this.versionFacts());
    if (binary.proof) facts.push(["Proof", binary.proof.summary(index), binary.proof.markOf(index)]);
    if (marks.length) facts.push(["Also", marks.join("; ")]);
    return facts;
  }

  // What the function takes in each version, or why it is not there.
  /** @type {() => Fact[]} */
  versionFacts() {
    const {binary, index} = this;
    return binary.versions.map(({version, impossible}) => {
      const name = `SFrame V${version}`,
        reason = binary.reasonOf(index, version);
      if (impossible) return [name, "cannot be made for this file", "bad"];
      if (reason) return [name, `left out: ${reason[1]}`, "bad"];
      return [name, bytes(binary.cost.get(version)?.[index])];
    });
  }

  marks() {
    const {binary, index} = this,
      flags = binary.flags[index],
      block = binary.block[index];
    return [
      flags & SIGNAL && "signal frame",
      flags & KEY_B && "return addresses signed with key B",
      flags & LSDA && "has an exception table",
      block && `rows repeat every ${bytes(block)}`,
    ].filter(Boolean);
  }

  // Show the frame at an offset.
  /** @type {(offset: number) => void} */
  move(offset) {
    const binary = this.binary,
      step = Number(this.slider.step) || 1,
      size = binary.size[this.index];
    this.offset = clamped(Math.floor(offset / step) * step, 0, size - 1);
    this.slider.value = String(this.offset);
    const place = binary.placeIn(this.index, this.offset),
      row = binary.rowAt(this.index, this.offset);
    const rows = binary.rows.count(this.index),
      which = row - binary.rows.first[this.index];
    const number = row < 0 ? "no row" : `row ${count(which + 1)} of ${count(rows)}`;
    this.slider.setAttribute("aria-valuetext", `${place}, ${number}`);
    this.where.replaceChildren(`${place} (+${hexadecimal(this.offset)}), ${number}`);
    this.profile.point(size > 1 ? this.offset / size : 0);
    this.frame.replaceChildren(frameDrawing(binary, this.index, this.offset));
    this.rows.mark(row < 0 ? -1 : which);
    this.instructions?.mark(this.offset);
    this.moved?.(place);
  }
}

/** @type {(text: string) => Child} */
function ruleCell(text) {
  const reason = whyInexpressible(text);
  return reason === null ? text : html("span", {class: "bad", title: reason}, "no rule");
}
