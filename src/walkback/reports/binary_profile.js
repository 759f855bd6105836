// How far the CFA is from the stack pointer, along the code of a function.
/** @import {Child} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
import {bytes, clamped, html} from "../pages/common.js";
import {svg} from "../pages/svg.js";
import {KIND} from "./binary_data.js";

// In pixels, where nothing else is said.
const WIDTH = 600,
  HEIGHT = 84,
  TOP = 8,
  BOTTOM = HEIGHT - 18,
  LEAST_WIDTH = 0.6,
  UNSEEN = 0.4;
const LEAST_DEPTH = 8; // In bytes: the scale is for no less.
const MOST_REGISTERS = 3;

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
    const deepest = depths.reduce((most, depth) => Math.max(most, depth), LEAST_DEPTH);
    const drawn = spans.map(({what, depth, left, right}) => {
      const y = what === "depth" ? BOTTOM - (Math.max(0, depth) / deepest) * (BOTTOM - TOP) : TOP;
      return svg("rect", {
        class: what,
        x: left,
        y,
        width: Math.max(right - left, LEAST_WIDTH),
        height: BOTTOM - y + 1,
      });
    });
    this.cursor = svg("line", {class: "cursor", x1: 0, x2: 0, y1: 2, y2: BOTTOM + 3});
    const box = `0 0 ${WIDTH} ${HEIGHT}`;
    this.element.replaceChildren(
      svg(
        "svg",
        {viewBox: box, preserveAspectRatio: "none", "aria-hidden": "true"},
        svg("rect", {class: "ground", x: 0, y: TOP, width: WIDTH, height: BOTTOM - TOP}),
        drawn,
        svg("line", {class: "axis", x1: 0, x2: WIDTH, y1: BOTTOM + 1, y2: BOTTOM + 1}),
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
    const spans = [];
    const scale = WIDTH / (binary.size[index] || 1);
    for (let at = binary.rows.first[index]; at < binary.rows.first[index + 1]; at++) {
      const [kind, register, depth] = binary.rule(at)[3],
        last = spans.at(-1);
      const isDepth = kind === KIND.REGISTER && register === binary.machine.sp;
      const other = kind === KIND.REGISTER || kind === KIND.AT_REGISTER ? "other" : "none";
      const left = binary.rows.offset[at] * scale,
        right = binary.rowEnd(index, at) * scale;
      const span = {what: isDepth ? "depth" : other, register, depth, left, right};
      // What is too small to be seen goes to the one before it.
      if (last?.what === span.what && right - last.left < UNSEEN) {
        last.right = right;
        last.depth = Math.max(last.depth, depth);
      } else spans.push(span);
    }
    return spans;
  }

  /** @type {(spans: Span[], deepest: number) => Child[]} */
  words(spans, deepest) {
    const binary = this.binary,
      name = binary.register.bind(binary);
    const registers = new Set(spans.filter(({what}) => what === "other").map(({register}) => name(register)));
    const words = [
      ["depth", deepest > 0 && `CFA above ${name(binary.machine.sp)}, up to ${bytes(deepest)}`],
      ["other", registers.size > 0 && `CFA based on ${[...registers].slice(0, MOST_REGISTERS).join(", ")}`],
      ["none", spans.some(({what}) => what === "none") && "inexpressible CFA"],
    ];
    return words.map(([what, text]) => text && html("span", {}, html("i", {class: `swatch ${what}`}), text));
  }

  /** @type {(event: MouseEvent) => void} */
  pointAt(event) {
    const box = /** @type {Element} */ (this.element.firstElementChild).getBoundingClientRect();
    if (event.clientY > box.bottom) return;
    const part = clamped((event.clientX - box.left) / box.width, 0, 1);
    this.chosen(part * (this.binary.size[this.index] - 1));
  }
}
