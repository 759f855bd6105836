// The code of a file by address: what functions there are, how many rows they have, and what tables cannot say.
/** @import {Binary} from "./binary_data.js" */
import {html, legendItem} from "../pages/common.js";
import {oncePerFrame} from "../pages/events.js";
import {VERDICT} from "./binary_data.js";
import {PROOF} from "./binary_proof.js";
import {drawSources, hasSeveral, sourceEntries} from "./binary_sources.js";
import {
  RULER,
  binsOf,
  drawCover,
  drawFunctions,
  drawProof,
  drawRows,
  drawRuler,
  drawSFrame,
  noBins,
} from "./binary_strips.js";

const GAP = 7;
const BELOW = 3; // Below the last lane.
const NAMES_WIDTH = 96; // Of the lanes' names, where the page is not narrow.
const NARROW = 560;
const OVERVIEW = 16;
const OVERVIEW_MARGIN = 4;
const OVERVIEW_LEAST = 3; // What is in sight is at least that wide in the overview.
const BOX = 4; // In pixels: narrower functions are marked by a pointer.
const POINTER = {line: 1.5, above: 4, half: 5, height: 7};
const LINE_WIDTH = {hovered: 1, chosen: 2};
// The width of a sheet in pixels; a printer needs `ratio` dots for each.
const PAPER = {width: 680, ratio: 3};
const HELP = "Code by address. Left and right arrows move between functions, plus and minus zoom, zero shows all";
const COLOURS = [
  "ink",
  "quiet",
  "line",
  "grid",
  "soft",
  "accent",
  "bad",
  "good",
  "warn",
  "c1",
  "c2",
  "c3",
  "c4",
  "c6",
  "c7",
  "eh",
  "code-1",
  "code-2",
  "code-ink",
];

/** @typedef {(line: LineDrawing, pen: Pen, paint: Paint, lane: Lane) => void} Strip */
/** @typedef {{draw: Strip, label: string, height: number, y: number}} Lane */
/** @typedef {Record<string, string>} Paint */
/** @typedef {CanvasRenderingContext2D} Pen */

// Draws; what is in sight and what is chosen is up to `CodeLine`.
export class LineDrawing {
  /** @param {Binary} binary */
  constructor(binary) {
    this.binary = binary;
    /** @type {number | null} */
    this.version = null;
    // The canvas in pixels: its width, the part with names of lanes, and pixels a byte of code.
    this.width = 0;
    this.gutter = 0;
    this.scale = 1;
    /** @type {Paint | null} */
    this.colours = null;
    this.redraw = oncePerFrame(() => this.draw());
    this.legendKey = "";
    this.bins = noBins(0);
    this.current = -1;
    this.hovered = -1;
    this.printed = false;
    this.from = 0;
    this.to = binary.lineLength;
    this.canvas = html("canvas", {
      tabindex: 0,
      role: "application",
      "aria-describedby": "line-description",
      class: "line",
      "aria-label": HELP,
    });
    this.small = html("canvas", {class: "overview", "aria-hidden": "true"});
    this.legend = html("ul", {class: "legend", "aria-label": "What the lanes show"});
    this.element = html("div", {}, this.canvas, this.small, this.legend);
    new ResizeObserver(this.redraw).observe(this.element);
    const anew = () => {
      this.colours = null;
      this.redraw();
    };
    document.addEventListener("themechange", anew);
    matchMedia("print").addEventListener("change", anew);
  }

  /** @type {() => Lane[]} */
  lanes() {
    /** @type {[draw: Strip, label: string, height: number][]} */
    const strips = [
      [drawFunctions, "Functions", 34],
      [drawRows, "Rows per byte", 30],
    ];
    if (hasSeveral(this.binary)) strips.push([drawSources, "Rules from", 14]);
    if (this.version) strips.push([drawCover, `SFrame V${this.version}`, 14]);
    if (this.binary.sframe?.compared) strips.push([drawSFrame, ".sframe", 14]);
    if (this.binary.proof) strips.push([drawProof, "Proof", 14]);
    let y = RULER;
    return strips.map(([draw, label, height]) => {
      const lane = {draw, label, height, y};
      y += height + GAP;
      return lane;
    });
  }

  /** @type {() => Paint} */
  palette() {
    if (this.colours) return this.colours;
    const probe = html("i", {hidden: true});
    document.body.append(probe);
    /** @type {(name: string) => string} */
    const read = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    /** @type {Paint} */
    const colours = Object.fromEntries(COLOURS.map((name) => [name, read(name)]));
    probe.remove();
    colours.mono = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
    colours.sans = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
    this.colours = colours;
    return colours;
  }

  // Drawing

  /** @type {(on: boolean) => void} */
  print(on) {
    this.printed = on;
    this.colours = null;
    this.draw();
  }

  /** @type {(canvas: HTMLCanvasElement, height: number) => Pen} */
  prepare(canvas, height) {
    const ratio = this.printed ? PAPER.ratio : window.devicePixelRatio || 1,
      {width} = this;
    const pixels = {width: Math.round(width * ratio), height: Math.round(height * ratio)};
    canvas.style.height = `${height}px`;
    if (canvas.width !== pixels.width || canvas.height !== pixels.height) {
      canvas.width = Math.max(1, pixels.width);
      canvas.height = pixels.height;
    }
    const pen = /** @type {Pen} */ (canvas.getContext("2d"));
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  draw() {
    this.width = this.printed ? PAPER.width : this.element.clientWidth;
    if (!this.width) return;
    this.gutter = this.width < NARROW ? 0 : NAMES_WIDTH;
    this.scale = (this.width - this.gutter) / (this.to - this.from);
    const lanes = this.lanes(),
      last = lanes[lanes.length - 1],
      height = last.y + last.height + BELOW;
    const pen = this.prepare(this.canvas, height),
      paint = this.palette();
    this.bins = binsOf(this);
    pen.save();
    pen.beginPath();
    pen.rect(this.gutter, 0, this.width - this.gutter, height);
    pen.clip();
    drawRuler(this, pen, paint, height);
    for (const lane of lanes) lane.draw(this, pen, paint, lane);
    this.drawMarks(pen, paint, lanes, height);
    pen.restore();
    for (const lane of lanes) this.drawName(pen, paint, lane.label, lane.y + lane.height / 2);
    this.drawOverview(paint);
    this.drawLegend();
  }

  /** @type {(x: number) => number} */
  px(x) {
    return this.gutter + (x - this.from) * this.scale;
  }
  /** @type {(px: number) => number} */
  at(px) {
    return this.from + (px - this.gutter) / this.scale;
  }

  /** @type {(pen: Pen, paint: Paint, lanes: Lane[], height: number) => void} */
  drawMarks(pen, paint, lanes, height) {
    /** @type {(index: number, width: number, colour: string) => void} */
    const drawMark = (index, width, colour) => {
      if (index < 0) return;
      const left = this.px(this.binary.x[index]),
        right = this.px(this.binary.xEnd[index]);
      if (right < this.gutter || left > this.width) return;
      if (right - left < BOX) {
        drawPointer(pen, colour, (left + right) / 2, height);
        return;
      }
      const [{y, height: laneHeight}] = lanes;
      pen.strokeStyle = paint.ink;
      pen.lineWidth = width;
      pen.strokeRect(left + width / 2, y + width / 2, right - left - width, laneHeight - width);
    };
    drawMark(this.hovered, LINE_WIDTH.hovered, paint.quiet);
    drawMark(this.current, LINE_WIDTH.chosen, paint.accent);
  }

  // To the left of what is drawn, if there is room.
  /** @type {(pen: Pen, paint: Paint, name: string, middle: number) => void} */
  drawName(pen, paint, name, middle) {
    if (!this.gutter) return;
    pen.font = paint.sans;
    pen.fillStyle = paint.quiet;
    pen.textBaseline = "middle";
    pen.fillText(name, 0, middle);
  }

  /** @type {(paint: Paint) => void} */
  drawOverview(paint) {
    const {lineLength, texts} = this.binary,
      pen = this.prepare(this.small, OVERVIEW),
      width = this.width - this.gutter;
    /** @type {(left: number, wide: number, colour: string) => void} */
    const fill = (left, wide, colour) => {
      pen.fillStyle = colour;
      pen.fillRect(left, OVERVIEW_MARGIN, wide, OVERVIEW - 2 * OVERVIEW_MARGIN);
    };
    /** @type {(x: number) => number} */
    const px = (x) => this.gutter + (x / lineLength) * width;
    fill(this.gutter, width, paint.soft);
    for (const text of texts) fill(px(text.x), 1, paint.line);
    const isWhole = this.from <= 0 && this.to >= lineLength,
      wide = ((this.to - this.from) / lineLength) * width;
    fill(px(this.from), Math.max(OVERVIEW_LEAST, wide), isWhole ? paint.line : paint.accent);
    this.drawName(pen, paint, "Visible", OVERVIEW / 2);
  }

  // The verdicts of the proof that there are.
  /** @type {() => string[][]} */
  proofEntries() {
    const all = this.binary.proof?.all ?? 0;
    /** @type {[verdict: number, colour: string, words: string][]} */
    const entries = [
      [PROOF.PROVED, "good", "proved"],
      [PROOF.WRONG, "bad", "wrong"],
      [PROOF.UNKNOWN, "c6", "unknown"],
      [PROOF.ASSUMED, "c1", "assumed"],
      [PROOF.NOT_JUDGED, "quiet", "not judged"],
    ];
    return entries.filter(([verdict]) => all & (1 << verdict)).map(([, colour, words]) => [`var(--${colour})`, words]);
  }

  drawLegend() {
    const binary = this.binary,
      cover = `covered by V${this.version}`;
    const lost = this.version && binary.versionOf(this.version).reasons.length > 1,
      verdicts = binary.stretches.allVerdicts;
    // Of what is wrong only what there is.
    const entries = [
      ["var(--code-1)", "function"],
      ["var(--c2)", "rows"],
      ...sourceEntries(binary),
      this.version && ["var(--good)", cover],
      lost && ["var(--bad)", `not ${cover}`],
      verdicts.has(VERDICT.DIFFERENT) && ["var(--bad)", ".sframe differs"],
      verdicts.has(VERDICT.ONLY_FRAMES) && ["var(--warn)", "only in call frame information"],
      verdicts.has(VERDICT.ONLY_SFRAME) && ["var(--quiet)", "only in .sframe"],
      verdicts.has(VERDICT.NEITHER) && ["var(--quiet)", "no rule in either"],
      ...this.proofEntries(),
    ].filter((entry) => Array.isArray(entry));
    const key = entries.join();
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(...entries.map(([colour, words]) => legendItem(colour, words)));
  }
}

// A pointer to a function that is too small to be seen itself.
/** @type {(pen: Pen, colour: string, x: number, height: number) => void} */
function drawPointer(pen, colour, x, height) {
  pen.fillStyle = colour;
  pen.fillRect(x - POINTER.line / 2, RULER - POINTER.above, POINTER.line, height);
  pen.beginPath();
  pen.moveTo(x - POINTER.half, RULER - POINTER.height);
  pen.lineTo(x + POINTER.half, RULER - POINTER.height);
  pen.lineTo(x, RULER);
  pen.fill();
}
