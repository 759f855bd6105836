// The part of the page about one function: its numbers, its rows, and its frame at a chosen address.
/** @import {ListColumn} from "./binary_list.js" */
/** @import {Child} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
/** @import {Part, Rule} from "./types.js" */
import {NONE, bytes, count, counted, html} from "../pages/common.js";
import {KEY_B, KIND, LSDA, SIGNAL, VERDICT, partText} from "./binary_data.js";
import {frameDrawing} from "./binary_frame.js";
import {LongTable} from "./binary_list.js";
import {Profile} from "./binary_profile.js";

const MOST_DIFFERENCES = 20;

/** @typedef {[term: string, text: string, mark?: string]} Fact */

// What no table can say is one reason for all parts.
/** @type {(text: string) => string} */
const noRule = (text) => text.replace(/^inexpressible \((.*)\)$/, "no rule: $1");
/** @type {(name: string, text: string) => string} */
const clause = (name, text) =>
  /^(unchanged|undefined|inexpressible)/.test(text) ? `${name} ${text}` : `${name} = ${text}`;
/** @type {(rule: Rule) => string} */
function ruleText([cfa, ra, fp, cfaPart, raPart, , isSigned]) {
  if (cfaPart[0] === KIND.UNDEFINED && raPart[0] === KIND.UNDEFINED) return "outermost frame";
  if (cfaPart[0] === KIND.INEXPRESSIBLE && cfa === ra) return noRule(cfa);
  return `${clause("CFA", cfa)}, ${clause("RA", ra)}${isSigned ? " signed" : ""}, ${clause("FP", fp)}`;
}

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
      this.differences,
    );
  }

  /** @type {() => ListColumn[]} */
  columns() {
    const its = [
      {title: "From", className: "from number mono"},
      {title: "CFA", className: "cfa mono"},
      {title: "RA", className: "ra mono"},
      {title: "FP", className: "fp mono"},
    ];
    if (this.binary.saved) its.push({title: "Saved at its end", className: "saved mono"});
    if (this.compared) its.push({title: ".sframe", className: "said"});
    return its;
  }

  /** @type {(row: number) => Child[]} */
  cells(row) {
    const binary = this.binary,
      at = binary.rows.first[this.index] + row,
      offset = binary.rows.offset[at];
    const [cfa, ra, fp, , , , isSigned] = binary.rule(at);
    const its = [`+0x${offset.toString(16)}`, this.cell(cfa), this.cell(isSigned ? `${ra} signed` : ra), this.cell(fp)];
    if (binary.saved) {
      /** @type {(saved: [register: number, where: Part]) => string} */
      const words = ([register, part]) => {
        const name = binary.register(register);
        return part[0] === KIND.AT_CFA ? name : `${name}: ${partText(binary, part)}`;
      };
      // Registers are saved while the three others stay as they are: what the row ends with says most.
      const text = binary
        .savedAt(this.index, binary.rowEnd(this.index, at) - 1)
        .map(words)
        .join(" ");
      its.push(text ? html("span", {title: text}, text) : NONE);
    }
    if (this.compared) {
      const apart = this.stretchesIn(offset, binary.rowEnd(this.index, at));
      const differs = apart.some((one) => binary.stretches.verdict[one] !== VERDICT.NEITHER);
      its.push(html("span", {class: differs ? "bad" : "good"}, differs ? "differs" : "same"));
    }
    return its;
  }

  /** @type {(text: string) => Child} */
  cell(text) {
    const reason = /^inexpressible \((.*)\)$/.exec(text);
    return reason ? html("span", {class: "bad", title: reason[1]}, "no rule") : text;
  }

  /** @type {(from: number, to: number) => number[]} */
  stretchesIn(from, to) {
    const binary = this.binary,
      block = binary.block[this.index];
    return (binary.stretches.byFunction.get(this.index) ?? []).filter((its) => {
      const begin = Number(binary.stretches.start[its] - binary.start[this.index]);
      // Rows of a repeating block stand for all its turns.
      return block ? true : begin < to && begin + binary.stretches.size[its] > from;
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
        this.factList().map(([term, text, mark]) =>
          html("div", {}, html("dt", {}, term), html("dd", {class: mark}, text)),
        ),
      ),
    );
    const step = {AArch64: 4, s390x: 2}[binary.machine.name] ?? 1;
    this.slider.max = String(Math.max(0, binary.size[index] - 1));
    this.slider.step = String(step);
    this.profile.show(index);
    this.rows.show(binary.rows.count(index), -1);
    this.showDifferences();
    this.move(offset ?? this.longest());
  }

  /** @type {(most: number) => void} */
  print(most) {
    const its = this.rows.count;
    this.rowsTitle.textContent = most && most < its ? `Rows: the first ${count(most)} of ${count(its)}` : "Rows";
    this.rows.print(most);
  }

  longest() {
    const binary = this.binary,
      {rows} = binary;
    let found = 0,
      most = 0;
    for (let at = rows.first[this.index]; at < rows.first[this.index + 1]; at++) {
      const size = binary.rowEnd(this.index, at) - rows.offset[at];
      if (size > most) [found, most] = [rows.offset[at], size];
    }
    return found;
  }

  /** @type {() => Fact[]} */
  factList() {
    const binary = this.binary,
      index = this.index;
    /** @type {Fact[]} */
    const its = [];
    const end = binary.placeIn(index, binary.size[index]);
    its.push(["Address", `${binary.place(binary.start[index], binary.text[index])} to ${end}`]);
    its.push(["Code", bytes(binary.size[index])], ["Rows", count(binary.rows.count(index))]);
    if (binary.sectionOf(index) && !binary.relocatable) its.push(["Section", binary.sectionOf(index)]);
    if (binary.fdeBytes[index]) {
      const fde = `FDE ${count(binary.fde[index])} at +0x${binary.fdePosition[index].toString(16)}`;
      its.push([binary.source, `${bytes(binary.fdeBytes[index])}, ${fde}`]);
    }
    for (const {version, impossible} of binary.versions) {
      const reason = binary.reasonOf(index, version);
      if (impossible) its.push([`SFrame V${version}`, "cannot be made for this file", "bad"]);
      else if (reason) its.push([`SFrame V${version}`, `not covered: ${reason[1]}`, "bad"]);
      else its.push([`SFrame V${version}`, bytes(binary.cost.get(version)?.[index])]);
    }
    const marks = [];
    if (binary.flags[index] & SIGNAL) marks.push("signal frame");
    if (binary.flags[index] & KEY_B) marks.push("return addresses signed with key B");
    if (binary.flags[index] & LSDA) marks.push("has a table for exceptions");
    if (binary.block[index]) marks.push(`rows repeat every ${bytes(binary.block[index])}`);
    if (marks.length) its.push(["Besides", marks.join("; ")]);
    return its;
  }

  // Show the frame at an offset.
  /** @type {(offset: number) => void} */
  move(offset) {
    const binary = this.binary,
      step = Number(this.slider.step) || 1,
      size = binary.size[this.index];
    this.offset = Math.max(0, Math.min(size - 1, Math.floor(offset / step) * step));
    this.slider.value = String(this.offset);
    const place = binary.placeIn(this.index, this.offset),
      row = binary.rowAt(this.index, this.offset);
    const rows = binary.rows.count(this.index),
      which = row - binary.rows.first[this.index];
    const number = row < 0 ? "no row" : `row ${count(which + 1)} of ${count(rows)}`;
    this.slider.setAttribute("aria-valuetext", `${place}, ${number}`);
    this.where.replaceChildren(`${place} (+0x${this.offset.toString(16)}), ${number}`);
    this.profile.point(size > 1 ? this.offset / size : 0);
    this.frame.replaceChildren(frameDrawing(binary, this.index, this.offset));
    const current = row < 0 ? -1 : which;
    if (this.rows.current !== current) {
      this.rows.current = current;
      if (current >= 0) this.rows.reveal();
      this.rows.draw(true);
    }
    this.moved?.(place);
  }

  showDifferences() {
    const binary = this.binary,
      found = binary.stretches.byFunction.get(this.index) ?? [];
    if (!this.compared) {
      this.differences.replaceChildren();
      return;
    }
    const heading = html("h4", {}, `${this.compared.name} against ${binary.source}`);
    if (!found.length) {
      const same = html("p", {class: "good"}, "They say the same at every address of this function.");
      this.differences.replaceChildren(heading, same);
      return;
    }
    const more = found.length - MOST_DIFFERENCES;
    const box = {class: "scroll", tabindex: 0, role: "region", "aria-label": "Differences"};
    const titles = ["Code", "", binary.source, this.compared.name];
    this.differences.replaceChildren(
      heading,
      html(
        "div",
        box,
        html(
          "table",
          {"aria-label": "Differences"},
          html(
            "thead",
            {},
            html(
              "tr",
              {},
              titles.map((title) => html("th", {scope: "col"}, title)),
            ),
          ),
          html(
            "tbody",
            {},
            found.slice(0, MOST_DIFFERENCES).map((its) => this.differenceRow(its)),
          ),
        ),
      ),
      html("p", {class: "quiet"}, more > 0 ? `and ${counted(more, "stretch", "stretches")} more` : ""),
    );
  }

  /** @type {(its: number) => HTMLElement} */
  differenceRow(its) {
    const binary = this.binary,
      from = Number(binary.stretches.start[its] - binary.start[this.index]);
    /** @type {(offset: number) => string} */
    const place = (offset) => `+0x${offset.toString(16)}`;
    const verdict =
      {
        [VERDICT.DIFFERENT]: "different",
        [VERDICT.ONLY_FRAMES]: `only in ${binary.source}`,
        [VERDICT.ONLY_SFRAME]: `only in ${binary.sframe?.name}`,
      }[binary.stretches.verdict[its]] ?? "neither has a rule";
    return html(
      "tr",
      {},
      html("td", {class: "mono number"}, `${place(from)} to ${place(from + binary.stretches.size[its])}`),
      html("td", {class: "bad"}, verdict),
      html("td", {class: "mono text"}, oneText(binary, this.index, its)),
      html("td", {class: "mono text"}, otherText(binary, its)),
    );
  }
}

/** @type {(text: string, flags: number) => string} */
function marked(text, flags) {
  return [text, flags & SIGNAL && "signal frame", flags & KEY_B && "key B"].filter(Boolean).join(", ");
}
/** @type {(binary: Binary, index: number, its: number) => string} */
function oneText(binary, index, its) {
  const number = binary.stretches.one[its];
  return number ? marked(ruleText(binary.rules[number - 1]), binary.flags[index]) : "no rule";
}
/** @type {(binary: Binary, its: number) => string} */
export function otherText(binary, its) {
  const number = binary.stretches.other[its];
  return number && binary.sframe
    ? marked(ruleText(binary.sframe.rules[number - 1]), binary.stretches.marks[its])
    : "no rule";
}
