// The stack frame of a function at one address, as its rule says: in words, and drawn with higher addresses above.
/** @import {Attributes} from "../pages/types.js" */
/** @import {Binary} from "./binary_data.js" */
/** @import {Part} from "./types.js" */
import {addTo, bytes, html, shortened} from "../pages/common.js";
import {svg} from "../pages/svg.js";
import {KIND} from "./binary_data.js";
import {partText, whyInexpressible} from "./binary_rules.js";

const SLOT = 8; // Bytes of a saved register.
const GAP_WORDS = {inside: "local variables", save: "save area of the caller", above: "of the caller"};

/** @typedef {[place: number, name: string]} Mark */
/** @typedef {{list: Piece[], highest: number}} Pieces */
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
    {machine} = binary;
  /** @type {Frame} */
  const frame = {
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
    frame.words.push("No row covers this address, so the frame is unknown.");
    return frame;
  }
  addCfa(frame, binary);
  if (!frame.drawn) return frame;
  const [, raText, fpText, , ra, fp, raSigned] = binary.rule(row);
  const raName = binary.register(machine.ra),
    fpName = binary.register(machine.fp);
  if (ra[0] !== KIND.UNDEFINED) addPart(frame, binary, "return address", ra, raName, raText);
  if (raSigned) frame.words.push("The return address is signed.");
  addPart(frame, binary, `caller\u2019s ${fpName}`, fp, fpName, fpText);
  addSaved(frame, binary, index, offset);
  const sp = frame.callerSp ? signed("CFA", frame.callerSp) : "the CFA";
  frame.words.push(`The caller\u2019s ${binary.register(machine.sp)} is ${sp}.`);
  return frame;
}

// Where the CFA is. Without one there is nothing to draw.
/** @type {(frame: Frame, binary: Binary) => void} */
function addCfa(frame, binary) {
  const [cfaText, , , cfa, ra] = binary.rule(frame.row),
    [kind, register, offset] = cfa;
  const isOutermost = ra[0] === KIND.UNDEFINED;
  if (isOutermost) frame.words.push("This is the outermost frame: it has no caller.");
  if (kind === KIND.UNDEFINED) {
    if (!isOutermost) frame.words.push("The CFA is unknown.");
    return;
  }
  if (kind === KIND.INEXPRESSIBLE) {
    frame.words.push(`No table can express the rule: ${whyInexpressible(cfaText) ?? cfaText}.`);
    return;
  }
  frame.drawn = true;
  frame.base = cfa;
  const name = binary.register(register);
  if (kind === KIND.REGISTER) {
    frame.words.push(`The CFA is ${signed(name, offset)}.`);
    frame.marks.push([-offset, name]);
  } else {
    frame.words.push(`The CFA is stored at ${signed(name, offset)}.`);
    keepApart(frame, register, offset, "the CFA");
  }
}

// Where one of the followed values is.
/** @type {(frame: Frame, binary: Binary, what: string, where: Part, own: string, text: string) => void} */
function addPart(frame, binary, what, [kind, register, offset], own, text) {
  const subject = `The ${what}`,
    place = signed(binary.register(register), offset);
  switch (kind) {
    case KIND.AT_CFA:
      frame.slots.set(offset, what);
      frame.words.push(`${subject} is at ${signed("CFA", offset)}.`);
      break;
    case KIND.AT_REGISTER:
      keepApart(frame, register, offset, what);
      frame.words.push(`${subject} is at ${place}.`);
      break;
    case KIND.UNCHANGED:
      frame.words.push(`${subject} is still in ${own}.`);
      break;
    case KIND.REGISTER:
      frame.words.push(`${subject} is in ${place}.`);
      break;
    case KIND.UNDEFINED:
      frame.words.push(`${subject} is lost.`);
      break;
    default:
      frame.words.push(`${subject}: ${text}.`);
  }
}

// What is beside a register: if the CFA counts from the same one it has a place from there.
/** @type {(frame: Frame, register: number, offset: number, what: string) => void} */
function keepApart(frame, register, offset, what) {
  if (frame.base?.[0] === KIND.REGISTER && frame.base[1] === register) {
    frame.slots.set(offset - frame.base[2], what);
    return;
  }
  const slots = frame.apart.get(register);
  if (slots) slots.set(offset, what);
  else frame.apart.set(register, new Map([[offset, what]]));
}

/** @type {(frame: Frame, binary: Binary, index: number, offset: number) => void} */
function addSaved(frame, binary, index, offset) {
  const saved = [],
    elsewhere = [];
  for (const [register, where] of binary.savedAt(index, offset)) {
    const [kind, base, place] = where,
      name = binary.register(register);
    const there = frame.slots.get(place),
      words = partText(binary, where);
    if (kind === KIND.AT_CFA) frame.slots.set(place, there ? `${there}, ${name}` : `caller\u2019s ${name}`);
    else if (kind === KIND.AT_REGISTER) keepApart(frame, base, place, `caller\u2019s ${name}`);
    if (kind === KIND.AT_CFA || kind === KIND.AT_REGISTER) saved.push(name);
    else if (kind === KIND.UNCHANGED || kind === KIND.UNDEFINED) elsewhere.push(`${name} is ${words}`);
    else elsewhere.push(`${name} ${words}`);
  }
  if (saved.length) frame.words.push(`Also saved: ${saved.join(", ")}.`);
  if (elsewhere.length) frame.words.push(`Other registers: ${elsewhere.join("; ")}.`);
}

// A column from top to bottom: pieces between the places that are given. `slots` are words by place, `marks` names that
// point to places; places are offsets from the CFA or from a register.
/** @type {(slots: Map<number, string>, places: number[], words: (bottom: number) => string) => Pieces} */
function pieces(slots, places, words) {
  const filled = [...slots].sort(([one], [other]) => other - one);
  const edges = [...new Set([...places, ...filled.flatMap(([place]) => [place, place + SLOT])])];
  edges.sort((one, other) => other - one);
  /** @type {Piece[]} */
  const column = [];
  for (let at = 0; at + 1 < edges.length; at++) {
    const [top, bottom] = [edges[at], edges[at + 1]],
      slot = filled.find(([place]) => place < top && place + SLOT >= top);
    column.push(slot ? {top, bottom, text: slot[1], slot: true} : {top, bottom, text: words(bottom), slot: false});
  }
  return {list: column, highest: edges[0]};
}

// The drawing in pixels: the column, its slots, and the gaps between them.
const WIDTH = 384,
  LEFT = 78,
  COLUMN = 168,
  ROW = 28,
  TALL = 42;
const SLOT_LETTERS = 26;
const BASELINE = 4; // From the middle of a line of text down to where its letters stand.
const PLACE_GAP = 10; // Between a place and the column.
const GAP_LINES = {name: -3, size: 13}; // Where they stand, from the middle of a gap.
const POINTER = {before: 6, behind: 24, tip: 2, words: 28};
const TITLE = {first: 16, column: 34, elsewhere: 24, elsewhereColumn: 44, end: 28};
const BELOW = {open: 40, closed: 14};
const TORN = {steps: 10, height: 8, tooth: 5};

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
  column({list, highest}, slots, from, pointers) {
    const at = new Map([[highest, this.y]]);
    for (const piece of list) {
      const height = piece.slot ? ROW : TALL,
        gap = piece.text === GAP_WORDS.inside ? "locals" : "foreign";
      this.parts.push(svg("rect", {class: piece.slot ? "slot" : gap, x: LEFT, y: this.y, width: COLUMN, height}));
      if (piece.slot) this.middle(this.y + ROW / 2 + BASELINE, shortened(piece.text, SLOT_LETTERS), {class: "strong"});
      else {
        this.middle(this.y + TALL / 2 + GAP_LINES.name, piece.text);
        this.middle(this.y + TALL / 2 + GAP_LINES.size, bytes(piece.top - piece.bottom));
      }
      this.y += height;
      at.set(piece.bottom, this.y);
      if (!slots.has(piece.bottom)) continue;
      this.text(LEFT - PLACE_GAP, this.y - ROW / 2 + BASELINE, signed(from, piece.bottom), {"text-anchor": "end"});
    }
    this.pointers(at, pointers);
  }

  // What points somewhere, to the right of the column; what points to one place is on one line.
  /** @type {(at: Map<number, number>, pointers: Mark[]) => void} */
  pointers(at, pointers) {
    /** @type {Map<number, string[]>} */
    const names = new Map();
    for (const [place, name] of pointers) addTo(names, place, name);
    for (const [place, list] of names) {
      const y = at.get(place) ?? this.y,
        x = LEFT + COLUMN,
        mark = list.includes("CFA") ? " cfa" : "";
      this.parts.push(
        svg("line", {class: `edge${mark}`, x1: LEFT - POINTER.before, x2: x + POINTER.behind, y1: y, y2: y}),
        svg("path", {class: `tip${mark}`, d: `M${x + POINTER.tip} ${y}l9 -4.5v9z`}),
      );
      this.text(x + POINTER.words, y + BASELINE, list.join(" = "), {class: "strong pointer"});
    }
  }

  /** @type {(direction: number) => void} */
  torn(direction) {
    this.parts.push(svg("path", {class: "torn", d: torn(LEFT, COLUMN, this.y, direction)}));
  }
}

/** @type {(binary: Binary, index: number, offset: number) => HTMLElement} */
export function frameDrawing(binary, index, offset) {
  const frame = frameOf(binary, index, offset),
    sp = binary.register(binary.machine.sp),
    words = frame.words.join(" ");
  if (!frame.drawn) return html("p", {class: "undrawn"}, words);
  const drawing = new FrameDrawing();
  drawing.middle(TITLE.first, "frame of the caller");
  drawing.y = TITLE.column;
  drawing.torn(-1);
  drawMain(drawing, frame, sp);
  // Where no rule says where the stack pointer is, nothing says where the frame ends.
  const isOpen = frame.marks.every(([, name]) => name !== sp);
  if (isOpen) drawing.torn(1);
  for (const [register, slots] of frame.apart) drawApart(drawing, binary.register(register), slots);
  if (isOpen) drawing.middle(drawing.y + TITLE.end, `down to ${sp}: unknown`);
  const height = drawing.y + (isOpen ? BELOW.open : BELOW.closed);
  const label = `The stack frame at ${binary.placeIn(index, offset)}. ${words}`;
  return html(
    "div",
    {class: "frame"},
    svg("svg", {viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label}, drawing.parts),
    html("p", {class: "words"}, words.replace(/ ([+\u2212]) /g, "\u00a0$1\u00a0")),
  );
}

// The column of what counts from the CFA.
/** @type {(drawing: FrameDrawing, frame: Frame, sp: string) => void} */
function drawMain(drawing, {slots, marks, callerSp}, sp) {
  /** @type {(bottom: number) => string} */
  const gapWords = (bottom) => {
    if (bottom >= 0) return GAP_WORDS.above;
    return callerSp < 0 && bottom >= callerSp ? GAP_WORDS.save : GAP_WORDS.inside;
  };
  /** @type {Mark[]} */
  const pointers = [[0, "CFA"], [callerSp, `caller\u2019s ${sp}`], ...marks];
  const places = pointers.map(([place]) => place);
  drawing.column(pieces(slots, places, gapWords), slots, "CFA", pointers);
}

// The column of what counts from another register.
/** @type {(drawing: FrameDrawing, register: string, slots: Map<number, string>) => void} */
function drawApart(drawing, register, slots) {
  drawing.middle(drawing.y + TITLE.elsewhere, `elsewhere, by ${register}`);
  drawing.y += TITLE.elsewhereColumn;
  drawing.torn(-1);
  const column = pieces(slots, [0], () => GAP_WORDS.inside);
  drawing.column(column, slots, register, [[0, register]]);
  drawing.torn(1);
}

/** @type {(left: number, width: number, y: number, down: number) => string} */
function torn(left, width, y, down) {
  const half = width / TORN.steps / 2;
  let path = `M${left} ${y}v${TORN.height * down}`;
  for (let step = 0; step < TORN.steps; step++) {
    const rise = step % 2 ? -TORN.tooth : TORN.tooth;
    path += `l${half} ${rise}l${half} ${-rise}`;
  }
  return `${path}V${y}z`;
}
