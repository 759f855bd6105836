// What the lanes of the code by address show: the ruler above them, and each lane.
/** @import {Lane, LineDrawing, Paint, Pen} from "./binary_lanes.js" */
/** @import {Text} from "./types.js" */
import {hexadecimal, shortened} from "../pages/common.js";
import {VERDICT} from "./binary_data.js";
import {PROOF} from "./binary_proof.js";

// All in pixels, but for shares of one.
export const RULER = 22;
const RULER_BASELINE = 13;
const TICK_HEIGHT = 6;
const TICK_DISTANCE = 110;
const TICK_SPACE = {left: 4, right: 8, behind: 12};
const SECTION_SPACE = {left: 5, behind: 12};
const WIDE = 3; // Functions from here on are drawn by themselves.
const LEAST_SPAN = 1e-9;
const LEAST_LOST = 0.15;
const LEAST_CODE = 0.004; // Less code in a pixel is not drawn.
const LETTER = 7.25;
const LEAST_LETTERS = 3;
const NAME_SPACE = 5;
const GAP = {normal: 1, narrow: 0.5, narrowTo: 6};
const ROWS_SCALE = 1.5; // Single rows can be seen where a byte has more.
const ROW_WIDTH = 2;
const STRETCH_WIDTH = 1.2;
const LOST_WIDTH = 1.4;
const PROOF_WIDTH = 2;
/** @type {[verdict: number, colour: string, part: number][]} */
const PROOF_BARS = [
  [PROOF.NOT_JUDGED, "quiet", 0.25],
  [PROOF.ASSUMED, "c1", 0.5],
  [PROOF.UNKNOWN, "c6", 0.75],
  [PROOF.WRONG, "bad", 1],
];

/** @typedef {{code: Float64Array, rows: Float64Array, lost: Float64Array, wide: number[]}} Bins */

// For each pixel the parts of it that are code, rows and code that is not covered; and functions of some pixels.
/** @type {(width: number) => Bins} */
export const noBins = (width) => ({
  code: new Float64Array(width),
  rows: new Float64Array(width),
  lost: new Float64Array(width),
  wide: [],
});

// What is in sight, summed up for each pixel where it is smaller than that.
/** @type {(line: LineDrawing) => Bins} */
export function binsOf(line) {
  const binary = line.binary,
    width = Math.ceil(line.width - line.gutter) + 1,
    scale = line.scale;
  const bins = noBins(width);
  const reason = line.version ? binary.reason.get(line.version) : undefined;
  const first = Math.max(0, binary.before(line.from));
  for (let index = first; index < binary.length && binary.x[index] < line.to; index++) {
    const left = (binary.x[index] - line.from) * scale,
      right = (binary.xEnd[index] - line.from) * scale;
    if (right < 0) continue;
    if (right - left >= WIDE) bins.wide.push(index);
    const rows = binary.rows.count(index),
      lost = reason !== undefined && reason[index] !== 0;
    const begin = Math.max(0, Math.floor(left)),
      end = Math.min(width - 1, Math.floor(right));
    const span = Math.max(right - left, LEAST_SPAN);
    for (let pixel = begin; pixel <= end; pixel++) {
      const part =
        begin === end ? Math.min(right, width) - Math.max(left, 0) : Math.min(right, pixel + 1) - Math.max(left, pixel);
      bins.code[pixel] += part;
      bins.rows[pixel] += rows * Math.min(1, part / span);
      // However small, what is not covered is seen.
      if (lost) bins.lost[pixel] = Math.max(bins.lost[pixel] + part, LEAST_LOST);
    }
  }
  return bins;
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, height: number) => void} */
export function drawRuler(line, pen, paint, height) {
  pen.font = paint.sans;
  pen.textBaseline = "alphabetic";
  let edge = -Infinity;
  for (const text of line.binary.texts) {
    const left = line.px(text.x),
      right = line.px(text.x + text.size);
    if (right < line.gutter || left > line.width) continue;
    pen.fillStyle = paint.line;
    pen.fillRect(Math.round(left), 0, 1, height);
    const label = text.name || "code",
      wide = pen.measureText(label).width + SECTION_SPACE.behind;
    const from = Math.max(left, line.gutter) + SECTION_SPACE.left;
    if (from < edge || right - from < wide) continue;
    pen.fillStyle = paint.ink;
    pen.fillText(label, from, RULER_BASELINE);
    edge = drawTicks(line, pen, paint, text, from + wide, Math.min(right, line.width));
  }
}

// Round addresses behind the name of a stretch.
/** @type {(line: LineDrawing, pen: Pen, paint: Paint, text: Text, edge: number, right: number) => number} */
function drawTicks(line, pen, paint, text, edge, right) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(TICK_DISTANCE / line.scale, 1)));
  const begin = line.at(edge) - text.x,
    first = BigInt(Math.max(0, Math.floor(begin)));
  const round = BigInt(step);
  pen.font = paint.sans;
  for (let where = ((text.start + first) / round + 1n) * round; ; where += round) {
    const left = line.px(text.x + Number(where - text.start));
    if (left > right || !(step < Infinity)) return edge;
    const words = `${line.binary.relocatable ? "+" : ""}${hexadecimal(where)}`;
    const width = pen.measureText(words).width;
    if (left > right - width - TICK_SPACE.right) return edge;
    if (left < edge) continue;
    pen.fillStyle = paint.grid;
    pen.fillRect(Math.round(left), RULER - TICK_HEIGHT, 1, TICK_HEIGHT);
    pen.fillStyle = paint.quiet;
    pen.fillText(words, left + TICK_SPACE.left, RULER_BASELINE);
    edge = left + width + TICK_SPACE.behind;
  }
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawFunctions(line, pen, paint, {y, height}) {
  pen.fillStyle = paint.soft;
  pen.fillRect(line.gutter, y, line.width - line.gutter, height);
  pen.fillStyle = paint["code-1"];
  line.bins.code.forEach((part, pixel) => {
    if (part <= LEAST_CODE) return;
    pen.globalAlpha = Math.min(1, 0.25 + 0.75 * part);
    pen.fillRect(line.gutter + pixel, y, 1, height);
  });
  pen.globalAlpha = 1;
  pen.font = paint.mono;
  pen.textBaseline = "middle";
  for (const index of line.bins.wide) {
    const left = Math.max(line.px(line.binary.x[index]), line.gutter);
    const right = Math.min(line.px(line.binary.xEnd[index]), line.width);
    const width = right - left,
      gap = width > GAP.narrowTo ? GAP.normal : GAP.narrow;
    pen.fillStyle = paint.soft;
    pen.fillRect(left, y, width, height);
    pen.fillStyle = index % 2 ? paint["code-1"] : paint["code-2"];
    pen.fillRect(left, y, Math.max(width - gap, 1), height);
    const letters = Math.floor((width - 2 * NAME_SPACE) / LETTER);
    if (letters < LEAST_LETTERS) continue;
    pen.fillStyle = paint["code-ink"];
    pen.fillText(shortened(line.binary.name(index), letters), left + NAME_SPACE, y + height / 2 + 1);
  }
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawRows(line, pen, paint, {y, height}) {
  pen.fillStyle = paint.grid;
  pen.fillRect(line.gutter, y + height - 1, line.width - line.gutter, 1);
  pen.fillStyle = paint.c2;
  if (line.scale > ROWS_SCALE) drawSingleRows(line, pen, y + 4, height - 5);
  else drawRowCounts(line, pen, y + height - 1, height - 2);
}

/** @type {(line: LineDrawing, pen: Pen, y: number, height: number) => void} */
function drawSingleRows(line, pen, y, height) {
  const {rows, x} = line.binary;
  for (const index of line.bins.wide) {
    for (let row = rows.first[index]; row < rows.first[index + 1]; row++) {
      const left = line.px(x[index] + rows.offset[row]);
      if (left < line.gutter - ROW_WIDTH || left > line.width) continue;
      pen.fillRect(Math.round(left), y, ROW_WIDTH, height);
    }
  }
}

// How many rows there are in each pixel.
/** @type {(line: LineDrawing, pen: Pen, bottom: number, highest: number) => void} */
function drawRowCounts({bins, gutter}, pen, bottom, highest) {
  const most = bins.rows.reduce((largest, number) => Math.max(largest, number), 0);
  bins.rows.forEach((number, pixel) => {
    if (number <= 0) return;
    const height = Math.max(1, (number / most) * highest);
    pen.fillRect(gutter + pixel, bottom - height, 1, height);
  });
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawCover(line, pen, paint, {y, height}) {
  drawGround(line, pen, paint, y, height);
  pen.fillStyle = paint.bad;
  line.bins.lost.forEach((part, pixel) => {
    if (!part) return;
    pen.globalAlpha = Math.min(1, 0.45 + part);
    pen.fillRect(line.gutter + pixel, y, LOST_WIDTH, height);
  });
  pen.globalAlpha = 1;
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawSFrame(line, pen, paint, {y, height}) {
  const binary = line.binary;
  drawGround(line, pen, paint, y, height);
  const colours = {[VERDICT.DIFFERENT]: paint.bad, [VERDICT.ONLY_FRAMES]: paint.warn};
  for (const [owner, list] of binary.stretches.byFunction) {
    if (binary.xEnd[owner] < line.from || binary.x[owner] > line.to) continue;
    for (const stretch of list) {
      const left = binary.x[owner] + Number(binary.stretches.start[stretch] - binary.start[owner]);
      pen.fillStyle = colours[binary.stretches.verdict[stretch]] ?? paint.quiet;
      const width = Math.max(STRETCH_WIDTH, binary.stretches.size[stretch] * line.scale);
      pen.fillRect(line.px(left), y, width, height);
    }
  }
}

// What is not proved: the worse, the higher, and the worst above the others.
/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawProof(line, pen, paint, {y, height}) {
  const {binary, from, to} = line,
    {proof} = binary;
  drawGround(line, pen, paint, y, height);
  if (!proof) return;
  const first = Math.max(0, binary.before(from)),
    end = binary.before(to) + 1;
  for (const [verdict, colour, part] of PROOF_BARS) {
    if (!(proof.all & (1 << verdict))) continue;
    pen.fillStyle = paint[colour];
    const high = Math.max(1, Math.round(height * part)),
      top = y + Math.floor((height - high) / 2);
    for (let index = first; index < end; index++) {
      if (!proof.has(index, verdict)) continue;
      for (let run = proof.runs.first[index]; run < proof.runs.first[index + 1]; run++) {
        if (proof.verdictOf(run) !== verdict) continue;
        const left = line.px(binary.x[index] + proof.runs.offset[run]);
        pen.fillRect(left, top, Math.max(PROOF_WIDTH, proof.runSize[run] * line.scale), high);
      }
    }
  }
}

// What is as it should be is a thin line; what is not stands out by its height too.
/** @type {(line: LineDrawing, pen: Pen, paint: Paint, y: number, height: number) => void} */
function drawGround(line, pen, paint, y, height) {
  pen.fillStyle = paint.good;
  line.bins.code.forEach((part, pixel) => {
    if (part <= LEAST_CODE) return;
    pen.globalAlpha = Math.min(1, 0.2 + 0.8 * part);
    pen.fillRect(line.gutter + pixel, y + height / 2 - 1, 1, 3);
  });
  pen.globalAlpha = 1;
}
