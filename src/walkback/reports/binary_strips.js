// What the lanes of the code by address show: the ruler above them, and each lane.
/** @import {Lane, LineDrawing, Paint, Pen} from "./binary_lanes.js" */
/** @import {Text} from "./types.js" */
import {VERDICT} from "./binary_data.js";

export const RULER = 22;

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
  for (let its = first; its < binary.length && binary.x[its] < line.to; its++) {
    const left = (binary.x[its] - line.from) * scale,
      right = (binary.xEnd[its] - line.from) * scale;
    if (right < 0) continue;
    if (right - left >= 3) bins.wide.push(its);
    const rows = binary.rows.count(its),
      lost = reason !== undefined && reason[its] !== 0;
    const begin = Math.max(0, Math.floor(left)),
      end = Math.min(width - 1, Math.floor(right));
    const span = Math.max(right - left, 1e-9);
    for (let pixel = begin; pixel <= end; pixel++) {
      const part =
        begin === end ? Math.min(right, width) - Math.max(left, 0) : Math.min(right, pixel + 1) - Math.max(left, pixel);
      bins.code[pixel] += part;
      bins.rows[pixel] += rows * Math.min(1, part / span);
      // However small, what is not covered is seen.
      if (lost) bins.lost[pixel] = Math.max(bins.lost[pixel] + part, 0.15);
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
      wide = pen.measureText(label).width + 12;
    const from = Math.max(left, line.gutter) + 5;
    if (from < edge || right - from < wide) continue;
    pen.fillStyle = paint.ink;
    pen.fillText(label, from, 13);
    edge = from + wide;
    edge = drawTicks(line, pen, paint, text, edge, Math.min(right, line.width));
  }
}

// Round addresses behind the name of a stretch.
/** @type {(line: LineDrawing, pen: Pen, paint: Paint, text: Text, edge: number, right: number) => number} */
function drawTicks(line, pen, paint, text, edge, right) {
  const wide = 110,
    step = 2 ** Math.ceil(Math.log2(Math.max(wide / line.scale, 1)));
  const begin = line.at(edge) - text.x,
    first = BigInt(Math.max(0, Math.floor(begin)));
  const round = BigInt(step);
  pen.font = paint.sans;
  for (let where = ((text.start + first) / round + 1n) * round; ; where += round) {
    const left = line.px(text.x + Number(where - text.start));
    if (left > right || !(step < Infinity)) return edge;
    const words = line.binary.relocatable ? `+0x${where.toString(16)}` : `0x${where.toString(16)}`;
    const width = pen.measureText(words).width;
    if (left > right - width - 8) return edge;
    if (left < edge) continue;
    pen.fillStyle = paint.grid;
    pen.fillRect(Math.round(left), RULER - 6, 1, 6);
    pen.fillStyle = paint.quiet;
    pen.fillText(words, left + 4, 13);
    edge = left + width + 12;
  }
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawFunctions(line, pen, paint, {y, height}) {
  pen.fillStyle = paint.soft;
  pen.fillRect(line.gutter, y, line.width - line.gutter, height);
  pen.fillStyle = paint["code-1"];
  line.bins.code.forEach((part, pixel) => {
    if (part <= 0.004) return;
    pen.globalAlpha = Math.min(1, 0.25 + 0.75 * part);
    pen.fillRect(line.gutter + pixel, y, 1, height);
  });
  pen.globalAlpha = 1;
  pen.font = paint.mono;
  pen.textBaseline = "middle";
  for (const its of line.bins.wide) {
    const left = Math.max(line.px(line.binary.x[its]), line.gutter);
    const right = Math.min(line.px(line.binary.xEnd[its]), line.width);
    const gap = right - left > 6 ? 1 : 0.5;
    pen.fillStyle = paint.soft;
    pen.fillRect(left, y, right - left, height);
    pen.fillStyle = its % 2 ? paint["code-1"] : paint["code-2"];
    pen.fillRect(left, y, Math.max(right - left - gap, 1), height);
    const letters = Math.floor((right - left - 10) / 7.25);
    if (letters < 3) continue;
    const name = line.binary.name(its);
    pen.fillStyle = paint["code-ink"];
    pen.fillText(name.length <= letters ? name : `${name.slice(0, letters - 1)}\u2026`, left + 5, y + height / 2 + 1);
  }
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawRows(line, pen, paint, {y, height}) {
  const binary = line.binary,
    per = line.bins.rows;
  pen.fillStyle = paint.grid;
  pen.fillRect(line.gutter, y + height - 1, line.width - line.gutter, 1);
  // Where single rows can be seen they are drawn; elsewhere how many there are.
  if (line.scale > 1.5) {
    for (const its of line.bins.wide) {
      const rows = binary.rows;
      for (let row = rows.first[its]; row < rows.first[its + 1]; row++) {
        const left = line.px(binary.x[its] + rows.offset[row]);
        if (left < line.gutter - 2 || left > line.width) continue;
        pen.fillStyle = paint.c2;
        pen.fillRect(Math.round(left), y + 4, 2, height - 5);
      }
    }
    return;
  }
  const most = per.reduce((one, other) => Math.max(one, other), 0);
  pen.fillStyle = paint.c2;
  per.forEach((number, pixel) => {
    if (number <= 0) return;
    const tall = Math.max(1, (number / most) * (height - 2));
    pen.fillRect(line.gutter + pixel, y + height - 1 - tall, 1, tall);
  });
}

/** @type {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} */
export function drawCover(line, pen, paint, {y, height}) {
  drawGround(line, pen, paint, y, height);
  pen.fillStyle = paint.bad;
  line.bins.lost.forEach((part, pixel) => {
    if (!part) return;
    pen.globalAlpha = Math.min(1, 0.45 + part);
    pen.fillRect(line.gutter + pixel, y, 1.4, height);
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
    for (const its of list) {
      const left = binary.x[owner] + Number(binary.stretches.start[its] - binary.start[owner]);
      pen.fillStyle = colours[binary.stretches.verdict[its]] ?? paint.quiet;
      pen.fillRect(line.px(left), y, Math.max(1.2, binary.stretches.size[its] * line.scale), height);
    }
  }
}

// What is as it should be is a thin line; what is not stands out by its height too.
/** @type {(line: LineDrawing, pen: Pen, paint: Paint, y: number, height: number) => void} */
function drawGround(line, pen, paint, y, height) {
  pen.fillStyle = paint.good;
  line.bins.code.forEach((part, pixel) => {
    if (part <= 0.004) return;
    pen.globalAlpha = Math.min(1, 0.2 + 0.8 * part);
    pen.fillRect(line.gutter + pixel, y + height / 2 - 1, 1, 3);
  });
  pen.globalAlpha = 1;
}
