// The code of a file by address: what functions there are, how many rows they have, and what tables cannot say.
/** @import {Binary} from "./binary_data.js" */
import {html} from "../pages/common.js";
import {VERDICT} from "./binary_data.js";
import {legendItem} from "./binary_head.js";
import {RULER, binsOf, drawCover, drawFunctions, drawRows, drawRuler, drawSFrame, noBins} from "./binary_strips.js";

const GAP = 7;
const OVERVIEW = 16;
const PAPER = 680; // As many pixels as a sheet is wide, with more in each for printers.
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
  "c2",
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
    this.waiting = false;
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
      "aria-describedby": "line-told",
      class: "line",
      "aria-label": HELP,
    });
    this.small = html("canvas", {class: "overview", "aria-hidden": "true"});
    this.legend = html("ul", {class: "legend", "aria-label": "What the lanes show"});
    this.element = html("div", {}, this.canvas, this.small, this.legend);
    new ResizeObserver(() => this.redraw()).observe(this.element);
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
    const its = [
      [drawFunctions, "Functions", 34],
      [drawRows, "Rows per byte", 30],
    ];
    if (this.version) its.push([drawCover, `SFrame V${this.version}`, 14]);
    if (this.binary.sframe?.compared) its.push([drawSFrame, ".sframe", 14]);
    let y = RULER;
    return its.map(([draw, label, height]) => {
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

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  /** @type {(canvas: HTMLCanvasElement, height: number) => Pen} */
  prepare(canvas, height) {
    const ratio = this.printed ? 3 : window.devicePixelRatio || 1,
      {width} = this;
    canvas.style.height = `${height}px`;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.round(height * ratio);
    }
    const pen = /** @type {Pen} */ (canvas.getContext("2d"));
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  draw() {
    this.width = this.printed ? PAPER : this.element.clientWidth;
    if (!this.width) return;
    this.gutter = this.width < 560 ? 0 : 96;
    this.scale = (this.width - this.gutter) / (this.to - this.from);
    const lanes = this.lanes(),
      last = lanes[lanes.length - 1],
      height = last.y + last.height + 3;
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
    if (this.gutter) {
      pen.font = paint.sans;
      pen.fillStyle = paint.quiet;
      pen.textBaseline = "middle";
      for (const lane of lanes) pen.fillText(lane.label, 0, lane.y + lane.height / 2);
    }
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
    for (const [its, width] of [
      [this.hovered, 1],
      [this.current, 2],
    ]) {
      if (its < 0) continue;
      const left = this.px(this.binary.x[its]),
        right = this.px(this.binary.xEnd[its]);
      if (right < this.gutter || left > this.width) continue;
      pen.strokeStyle = paint.ink;
      pen.lineWidth = width;
      if (right - left >= 4) {
        const {y, height: tall} = lanes[0];
        pen.strokeRect(left + width / 2, y + width / 2, right - left - width, tall - width);
      } else {
        // A pointer where the function itself is too small to be seen.
        const middle = (left + right) / 2;
        pen.fillStyle = width === 2 ? paint.accent : paint.quiet;
        pen.fillRect(middle - 0.75, RULER - 4, 1.5, height);
        pen.beginPath();
        pen.moveTo(middle - 5, RULER - 7);
        pen.lineTo(middle + 5, RULER - 7);
        pen.lineTo(middle, RULER);
        pen.fill();
      }
    }
  }

  /** @type {(paint: Paint) => void} */
  drawOverview(paint) {
    const binary = this.binary,
      pen = this.prepare(this.small, OVERVIEW),
      all = this.width - this.gutter;
    const whole = this.from <= 0 && this.to >= binary.lineLength;
    pen.fillStyle = paint.soft;
    pen.fillRect(this.gutter, 4, all, OVERVIEW - 8);
    pen.fillStyle = paint.line;
    for (const text of binary.texts) pen.fillRect(this.gutter + (text.x / binary.lineLength) * all, 4, 1, OVERVIEW - 8);
    const left = this.gutter + (this.from / binary.lineLength) * all;
    const wide = Math.max(3, ((this.to - this.from) / binary.lineLength) * all);
    pen.fillStyle = whole ? paint.line : paint.accent;
    pen.fillRect(left, 4, wide, OVERVIEW - 8);
    if (!this.gutter) return;
    pen.font = paint.sans;
    pen.fillStyle = paint.quiet;
    pen.textBaseline = "middle";
    pen.fillText("In sight", 0, OVERVIEW / 2);
  }

  drawLegend() {
    const binary = this.binary,
      cover = `covered by V${this.version}`;
    const lost = this.version && binary.versionOf(this.version).reasons.length > 1;
    // Of what is wrong only what there is.
    const its = [
      ["var(--code-1)", "function"],
      ["var(--c2)", "rows of the table"],
      this.version && ["var(--good)", cover],
      lost && ["var(--bad)", `not ${cover}`],
      binary.stretches.found.has(VERDICT.DIFFERENT) && ["var(--bad)", ".sframe says something else"],
      binary.stretches.found.has(VERDICT.ONLY_FRAMES) && ["var(--warn)", "only in call frame information"],
      binary.stretches.found.has(VERDICT.ONLY_SFRAME) && ["var(--quiet)", "only in .sframe"],
      binary.stretches.found.has(VERDICT.NEITHER) && ["var(--quiet)", "a rule in neither"],
    ].filter((one) => Array.isArray(one));
    const key = its.join();
    if (this.legendKey === key) return;
    this.legendKey = key;
    this.legend.replaceChildren(...its.map(([colour, words]) => legendItem(colour, words)));
  }
}
