// How far the CFA is from the stack pointer, along the code of a function.
/** @import {Child} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
import {bytes, html, svg} from "../pages/common.js";
import {KIND} from "./binary_data.js";

const WIDTH = 600,
  HEIGHT = 84;

/** @typedef {{what: string, register: number, depth: number, left: number, right: number}} Span */

export class Profile {
  // `chosen(offset)` is called when somebody points at a place in the code.
  /** @param {Binary} binary @param {(offset: number) => void} chosen */
  constructor(binary, chosen) {
    this.binary = binary;
    this.chosen = chosen;
    this.index = -1;
    this.cursor = svg("line", {class: "cursor"});
    this.element = html("div", {class: "profile", onclick: (event) => this.pointAt(event)});
  }

  // Draw the profile of a function.
  /** @type {(index: number) => void} */
  show(index) {
    this.index = index;
    const spans = this.spans(),
      depths = spans.filter(({what}) => what === "depth").map(({depth}) => depth);
    const deepest = depths.reduce((one, other) => Math.max(one, other), 8),
      top = 8,
      bottom = HEIGHT - 18;
    /** @type {(span: Span) => number} */
    const y = ({what, depth}) => (what === "depth" ? bottom - (Math.max(0, depth) / deepest) * (bottom - top) : top);
    const drawn = spans.map((one) =>
      svg("rect", {
        class: one.what,
        x: one.left,
        y: y(one),
        width: Math.max(one.right - one.left, 0.6),
        height: bottom - y(one) + 1,
      }),
    );
    this.cursor = svg("line", {class: "cursor", x1: 0, x2: 0, y1: 2, y2: bottom + 3});
    const box = `0 0 ${WIDTH} ${HEIGHT}`;
    this.element.replaceChildren(
      svg(
        "svg",
        {viewBox: box, preserveAspectRatio: "none", "aria-hidden": "true"},
        svg("rect", {class: "ground", x: 0, y: top, width: WIDTH, height: bottom - top}),
        drawn,
        svg("line", {class: "axis", x1: 0, x2: WIDTH, y1: bottom + 1, y2: bottom + 1}),
        this.cursor,
      ),
      html("p", {class: "legend"}, this.words(spans, depths.length ? deepest : 0)),
    );
  }

  // Move the cursor to a part of the code.
  /** @type {(part: number) => void} */
  point(part) {
    this.cursor.setAttribute("x1", String(part * WIDTH));
    this.cursor.setAttribute("x2", String(part * WIDTH));
  }

  // Neighbours that look the same are one.
  /** @type {() => Span[]} */
  spans() {
    const binary = this.binary,
      index = this.index;
    /** @type {Span[]} */
    const found = [];
    const scale = WIDTH / (binary.size[index] || 1);
    for (let at = binary.rows.first[index]; at < binary.rows.first[index + 1]; at++) {
      const [kind, register, depth] = binary.rule(at)[3],
        last = found.at(-1);
      const beside = kind === KIND.REGISTER && register === binary.machine.sp;
      const other = kind === KIND.REGISTER || kind === KIND.AT_REGISTER ? "other" : "none";
      const left = binary.rows.offset[at] * scale,
        right = binary.rowEnd(index, at) * scale;
      const its = {what: beside ? "depth" : other, register, depth, left, right};
      // What is too small to be seen goes to the one before it.
      if (last?.what === its.what && its.right - last.left < 0.4) {
        last.right = its.right;
        last.depth = Math.max(last.depth, depth);
      } else found.push(its);
    }
    return found;
  }

  /** @type {(spans: Span[], deepest: number) => Child[]} */
  words(spans, deepest) {
    const binary = this.binary,
      name = binary.register.bind(binary);
    const registers = new Set(spans.filter(({what}) => what === "other").map(({register}) => name(register)));
    const words = [
      ["depth", deepest > 0 && `CFA above ${name(binary.machine.sp)}, up to ${bytes(deepest)}`],
      ["other", registers.size > 0 && `CFA by ${[...registers].slice(0, 3).join(", ")}`],
      ["none", spans.some(({what}) => what === "none") && "no CFA that tables can have"],
    ];
    return words.map(([what, text]) => text && html("span", {}, html("i", {class: `swatch ${what}`}), text));
  }

  /** @type {(event: MouseEvent) => void} */
  pointAt(event) {
    const box = /** @type {Element} */ (this.element.firstElementChild).getBoundingClientRect();
    if (event.clientY > box.bottom) return;
    this.chosen(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (this.binary.size[this.index] - 1));
  }
}
