// The stack frame of a function at one address, as its rule says: in words, and drawn with higher addresses above.
/** @import {Attributes} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
/** @import {Part} from "./types.js" */
import {bytes, html, svg} from "../pages/common.js";
import {KIND, partText} from "./binary_data.js";

const SLOT = 8;
const GAP_WORDS = {inside: "local variables and the like", save: "save area of the caller", above: "of the caller"};

/** @typedef {[place: number, name: string]} Mark */
/** @typedef {{found: Piece[], highest: number}} Pieces */
/** @typedef {{top: number, bottom: number, text: string, slot: boolean}} Piece */
/**
 * @typedef {object} Frame
 * @property {number} row
 * @property {Map<number, string>} slots What is where, from the CFA.
 * @property {Mark[]} marks
 * @property {Map<number, Map<number, string>>} apart What is where, from registers.
 * @property {string[]} words
 * @property {boolean} drawn
 * @property {Part | null} base What the CFA counts from.
 * @property {number} callerSp
 */

/** @type {(name: string, offset: number) => string} */
const signed = (name, offset) => (offset ? `${name} ${offset < 0 ? "\u2212" : "+"} ${Math.abs(offset)}` : name);

// What the rule says, sorted: slots of memory that count from the CFA, marks at places that registers point to, and
// sentences for all that has no place in the drawing.
/** @type {(binary: Binary, index: number, offset: number) => Frame} */
function frameOf(binary, index, offset) {
  const row = binary.rowAt(index, offset),
    machine = binary.machine;
  /** @type {Frame} */
  const its = {
    row,
    slots: new Map(),
    marks: [],
    apart: new Map(),
    words: [],
    drawn: false,
    base: null,
    callerSp: machine.spFromCfa,
  };
  if (row < 0) {
    its.words.push("No row holds at this address, so nothing is known of the frame.");
    return its;
  }
  const [cfaText, raText, fpText, cfa, ra, fp, raSigned] = binary.rule(row);
  /** @type {(number: number) => string} */
  const name = (number) => binary.register(number);
  if (ra[0] === KIND.UNDEFINED) {
    its.words.push("This is the outermost frame: it has no caller.");
    if (cfa[0] === KIND.UNDEFINED) return its;
  }
  if (cfa[0] === KIND.INEXPRESSIBLE || cfa[0] === KIND.UNDEFINED) {
    const reason = cfaText.replace(/^inexpressible \((.*)\)$/, "$1");
    its.words.push(
      cfa[0] === KIND.UNDEFINED
        ? "Where the CFA is, is not known."
        : `There is no rule that tables can have: ${reason}.`,
    );
    return its;
  }
  its.drawn = true;
  its.base = cfa;
  if (cfa[0] === KIND.REGISTER) {
    its.words.push(`The CFA is ${signed(name(cfa[1]), cfa[2])}.`);
    its.marks.push([-cfa[2], name(cfa[1])]);
  } else {
    its.words.push(`The CFA is what memory has at ${signed(name(cfa[1]), cfa[2])}.`);
    keepApart(its, cfa[1], cfa[2], "the CFA");
  }
  part(its, binary, "return address", ra, name(machine.ra), raText, ra[0] === KIND.UNDEFINED);
  if (raSigned) its.words.push("The return address is signed.");
  part(its, binary, `caller\u2019s ${name(machine.fp)}`, fp, name(machine.fp), fpText, false);
  savedParts(its, binary, index, offset);
  const sp = its.callerSp;
  its.words.push(`The caller\u2019s ${name(machine.sp)} is ${sp ? signed("CFA", sp) : "the CFA"}.`);
  return its;
}

// Where one of the followed values is.
/**
 * @type {(
 *   its: Frame, binary: Binary, what: string, where: Part, own: string, text: string, silent: boolean
 * ) => void}
 */
function part(its, binary, what, [kind, register, offset], own, text, silent) {
  const said = what.replace(/^caller/, "the caller").replace(/^return/, "the return");
  const upper = said[0].toUpperCase() + said.slice(1);
  if (silent) return;
  if (kind === KIND.AT_CFA) {
    its.slots.set(offset, what);
    its.words.push(`${upper} is at ${signed("CFA", offset)}.`);
  } else if (kind === KIND.AT_REGISTER) {
    keepApart(its, register, offset, what);
    its.words.push(`${upper} is at ${signed(binary.register(register), offset)}.`);
  } else if (kind === KIND.UNCHANGED) its.words.push(`${upper} is still in ${own}.`);
  else if (kind === KIND.REGISTER) its.words.push(`${upper} is in ${signed(binary.register(register), offset)}.`);
  else if (kind === KIND.UNDEFINED) its.words.push(`${upper} is lost.`);
  else its.words.push(`${upper}: ${text}.`);
}

// What is beside a register: if the CFA counts from the same one it has a place from there.
/** @type {(its: Frame, register: number, offset: number, what: string) => void} */
function keepApart(its, register, offset, what) {
  if (its.base?.[0] === KIND.REGISTER && its.base[1] === register) {
    its.slots.set(offset - its.base[2], what);
    return;
  }
  const those = its.apart.get(register);
  if (those) those.set(offset, what);
  else its.apart.set(register, new Map([[offset, what]]));
}

/** @type {(its: Frame, binary: Binary, index: number, offset: number) => void} */
function savedParts(its, binary, index, offset) {
  const saved = [],
    elsewhere = [];
  for (const [register, where] of binary.savedAt(index, offset)) {
    const [kind, base, place] = where,
      name = binary.register(register);
    const there = its.slots.get(place);
    if (kind === KIND.AT_CFA) its.slots.set(place, there ? `${there}, ${name}` : `caller\u2019s ${name}`);
    else if (kind === KIND.AT_REGISTER) keepApart(its, base, place, `caller\u2019s ${name}`);
    if (kind === KIND.AT_CFA || kind === KIND.AT_REGISTER) saved.push(name);
    else if (kind === KIND.UNCHANGED || kind === KIND.UNDEFINED)
      elsewhere.push(`${name} is ${partText(binary, where)}`);
    else elsewhere.push(`${name} ${partText(binary, where)}`);
  }
  if (saved.length) its.words.push(`Saved besides: ${saved.join(", ")}.`);
  if (elsewhere.length) its.words.push(`Other registers: ${elsewhere.join("; ")}.`);
}

// A column from top to bottom: pieces between the places that are given. `slots` are words by place, `marks` names that
// point to places; places are offsets from the CFA or from a register.
/** @type {(slots: Map<number, string>, places: number[], words: (bottom: number) => string) => Pieces} */
function pieces(slots, places, words) {
  const list = [...slots].sort(([one], [other]) => other - one);
  const edges = [...new Set([...places, ...list.flatMap(([place]) => [place, place + SLOT])])];
  edges.sort((one, other) => other - one);
  /** @type {Piece[]} */
  const found = [];
  for (let at = 0; at + 1 < edges.length; at++) {
    const [top, bottom] = [edges[at], edges[at + 1]],
      slot = list.find(([place]) => place < top && place + SLOT >= top);
    found.push(slot ? {top, bottom, text: slot[1], slot: true} : {top, bottom, text: words(bottom), slot: false});
  }
  return {found, highest: edges[0]};
}

const WIDTH = 384,
  LEFT = 78,
  COLUMN = 168,
  ROW = 28,
  TALL = 42;

class FrameDrawing {
  constructor() {
    /** @type {SVGElement[]} */
    this.parts = [];
    this.y = 0;
  }
  /** @type {(x: number, y: number, words: string, more?: Attributes) => void} */
  text(x, y, words, more = {}) {
    this.parts.push(svg("text", {x, y, ...more}, words));
  }
  /** @type {(y: number, words: string, more?: Attributes) => void} */
  middle(y, words, more = {}) {
    this.text(LEFT + COLUMN / 2, y, words, {"text-anchor": "middle", ...more});
  }

  // Pieces below each other; `from` is what places count from, `pointers` names by place.
  /** @type {(pieces: Pieces, slots: Map<number, string>, from: string, pointers: Mark[]) => void} */
  column({found, highest}, slots, from, pointers) {
    const at = new Map([[highest, this.y]]);
    for (const piece of found) {
      const height = piece.slot ? ROW : TALL,
        gap = piece.text === GAP_WORDS.inside ? "locals" : "foreign";
      this.parts.push(svg("rect", {class: piece.slot ? "slot" : gap, x: LEFT, y: this.y, width: COLUMN, height}));
      if (piece.slot) this.middle(this.y + ROW / 2 + 4, shortened(piece.text, 26), {class: "strong"});
      else {
        this.middle(this.y + TALL / 2 - 3, piece.text);
        this.middle(this.y + TALL / 2 + 13, bytes(piece.top - piece.bottom));
      }
      this.y += height;
      at.set(piece.bottom, this.y);
      if (!slots.has(piece.bottom)) continue;
      this.text(LEFT - 10, this.y - ROW / 2 + 4, signed(from, piece.bottom), {"text-anchor": "end"});
    }
    this.pointers(at, pointers);
  }

  // What points somewhere, to the right of the column; what points to one place is on one line.
  /** @type {(at: Map<number, number>, pointers: Mark[]) => void} */
  pointers(at, pointers) {
    /** @type {Map<number, string[]>} */
    const names = new Map();
    for (const [place, name] of pointers) names.set(place, [...(names.get(place) ?? []), name]);
    for (const [place, list] of names) {
      const y = at.get(place) ?? this.y,
        x = LEFT + COLUMN,
        mark = list.includes("CFA") ? " cfa" : "";
      this.parts.push(
        svg("line", {class: `edge${mark}`, x1: LEFT - 6, x2: x + 24, y1: y, y2: y}),
        svg("path", {class: `tip${mark}`, d: `M${x + 2} ${y}l9 -4.5v9z`}),
      );
      this.text(x + 28, y + 4, list.join(" = "), {class: "strong pointer"});
    }
  }

  /** @type {(direction: number) => void} */
  torn(direction) {
    this.parts.push(svg("path", {class: "torn", d: torn(LEFT, COLUMN, this.y, direction)}));
  }
}

/** @type {(binary: Binary, index: number, offset: number) => HTMLElement} */
export function frameDrawing(binary, index, offset) {
  const its = frameOf(binary, index, offset),
    sp = binary.register(binary.machine.sp);
  if (!its.drawn) return html("p", {class: "undrawn"}, its.words.join(" "));
  const drawing = new FrameDrawing();
  drawing.middle(16, "frame of the caller");
  drawing.y = 34;
  drawing.torn(-1);
  /** @type {(bottom: number) => string} */
  const words = (bottom) => {
    if (bottom >= 0) return GAP_WORDS.above;
    return its.callerSp < 0 && bottom >= its.callerSp ? GAP_WORDS.save : GAP_WORDS.inside;
  };
  /** @type {Mark[]} */
  const pointers = [[0, "CFA"], [its.callerSp, `caller\u2019s ${sp}`], ...its.marks];
  drawing.column(
    pieces(
      its.slots,
      pointers.map(([place]) => place),
      words,
    ),
    its.slots,
    "CFA",
    pointers,
  );
  const open = its.marks.every(([, name]) => name !== sp);
  if (open) drawing.torn(1);
  for (const [register, slots] of its.apart) {
    drawing.middle(drawing.y + 24, `elsewhere, by ${binary.register(register)}`);
    drawing.y += 44;
    drawing.torn(-1);
    const name = binary.register(register);
    drawing.column(
      pieces(slots, [0], () => GAP_WORDS.inside),
      slots,
      name,
      [[0, name]],
    );
    drawing.torn(1);
  }
  if (open) drawing.middle(drawing.y + 28, `down to ${sp}: the rule does not say`);
  const height = drawing.y + (open ? 40 : 14);
  const label = `The stack frame at ${binary.placeIn(index, offset)}. ${its.words.join(" ")}`;
  return html(
    "div",
    {class: "frame"},
    svg("svg", {viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label}, drawing.parts),
    html("p", {class: "words"}, its.words.join(" ").replace(/ ([+\u2212]) /g, "\u00a0$1\u00a0")),
  );
}

/** @type {(text: string, letters: number) => string} */
const shortened = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text);

/** @type {(left: number, width: number, y: number, down: number) => string} */
function torn(left, width, y, down) {
  const step = width / 10;
  let path = `M${left} ${y}v${8 * down}`;
  for (let at = 0; at < 10; at++) path += `l${step / 2} ${at % 2 ? -5 : 5}l${step / 2} ${at % 2 ? 5 : -5}`;
  return `${path}V${y}z`;
}
