// Moves through the code by address: by buttons and by keys, and as gestures ask for.
/** @import {Binary} from "./binary_data.js" */
import {bytes, clamped, counted, html} from "../pages/common.js";
import {isModified} from "../pages/events.js";
import {Gestures} from "./binary_gestures.js";
import {LineDrawing} from "./binary_lanes.js";
import {PROOF} from "./binary_proof.js";
import {hasSeveral, sourceWords} from "./binary_sources.js";

const LEAST_BYTES = 24; // No less code is in sight.
const LEAST_MARGIN = 8;
const MARGIN = 0.35; // What is shown on either side of a function, in parts of it.
const ZOOM_IN = 0.5,
  ZOOM_OUT = 2,
  DOUBLE_CLICK_ZOOM = 0.25;
const NEAR = 4; // How far beside a function it can be pointed at, in pixels.
const LEAST_TO_POINT_INTO = 40; // In pixels: in narrower functions it is the function that is meant.

export class CodeLine extends LineDrawing {
  // `chosen(index, offset)` is called when somebody chooses a function; without an offset the function is meant.
  /** @param {Binary} binary @param {(index: number, offset: number | null) => void} chosen */
  constructor(binary, chosen) {
    super(binary);
    this.chosen = chosen;
    this.description = html("p", {id: "line-description", class: "description", "aria-live": "polite"});
    this.gestures = new Gestures(this);
    const buttons = html(
      "div",
      {class: "zoom screen"},
      this.button("\u2212", "Zoom out", () => this.zoom(ZOOM_OUT)),
      this.button("+", "Zoom in", () => this.zoom(ZOOM_IN)),
      this.button("Function", "Show the chosen function", () => this.showFunction(this.current)),
      this.button("All", "Show all code", () => this.show(0, binary.lineLength)),
    );
    this.element.prepend(html("div", {class: "bar"}, this.description, buttons));
    this.listen();
  }

  /** @type {(text: string, title: string, onclick: () => void) => HTMLElement} */
  button(text, title, onclick) {
    return html("button", {type: "button", class: "small", title, "aria-label": title, onclick}, text);
  }

  /** @type {(from: number, to: number) => void} */
  show(from, to) {
    const whole = this.binary.lineLength,
      size = clamped(to - from, Math.min(whole, LEAST_BYTES), whole),
      middle = (from + to) / 2;
    this.from = clamped(middle - size / 2, 0, whole - size);
    this.to = this.from + size;
    this.redraw();
  }
  // Zoom at a place, which stays where it is; or to the chosen function, or the middle of what is in sight.
  /** @type {(factor: number, around?: number | null) => void} */
  zoom(factor, around = null) {
    const size = this.to - this.from,
      newSize = size * factor;
    const part = around === null ? 0.5 : (around - this.from) / size;
    const place = around ?? (this.inSight(this.current) ? this.middleOf(this.current) : (this.from + this.to) / 2);
    this.show(place - newSize * part, place + newSize * (1 - part));
  }
  /** @type {(index: number) => boolean} */
  inSight(index) {
    return index >= 0 && this.binary.xEnd[index] > this.from && this.binary.x[index] < this.to;
  }
  /** @type {(index: number) => number} */
  middleOf(index) {
    return (this.binary.x[index] + this.binary.xEnd[index]) / 2;
  }
  /** @type {(index: number) => void} */
  showFunction(index) {
    if (index < 0) return;
    const left = this.binary.x[index],
      right = this.binary.xEnd[index],
      margin = Math.max((right - left) * MARGIN, LEAST_MARGIN);
    this.show(left - margin, right + margin);
  }

  // Of a function that was chosen elsewhere.
  /** @type {(index: number) => void} */
  select(index) {
    this.current = index;
    this.hovered = -1;
    if (index >= 0 && !this.inSight(index)) {
      const size = this.to - this.from,
        middle = this.middleOf(index);
      this.show(middle - size / 2, middle + size / 2);
    }
    this.describe(index);
    this.redraw();
  }

  /** @type {(index: number) => void} */
  describe(index) {
    const binary = this.binary;
    if (index < 0) {
      this.description.replaceChildren(html("span", {class: "quiet"}, "Point at a function, or choose one."));
      return;
    }
    const place = binary.place(binary.start[index], binary.text[index]);
    const words = [place, bytes(binary.size[index]), counted(binary.rows.count(index), "row")];
    if (hasSeveral(binary)) words.push(`rules from ${sourceWords(binary, index)}`);
    const reason = this.version ? binary.reasonOf(index, this.version) : null;
    if (reason) words.push(`not in V${this.version}: ${reason[1]}`);
    if (binary.proof?.has(index, PROOF.WRONG)) words.push(binary.proof.summary(index));
    this.description.replaceChildren(
      html("b", {class: "mono"}, binary.name(index)),
      html("span", {class: "quiet number"}, words.join(" \u00b7 ")),
    );
  }

  // How far to the right of the canvas's edge somebody points.
  /** @type {(event: MouseEvent) => number} */
  canvasX(event) {
    return event.clientX - this.canvas.getBoundingClientRect().left;
  }
  // The function at a place; beside one the nearest within some pixels, since most are smaller than that.
  /** @type {(x: number) => number} */
  functionNear(x) {
    const {x: begins, xEnd: ends, length} = this.binary,
      index = this.binary.before(x);
    if (index < 0 || x < ends[index]) return index;
    const before = x - ends[index],
      behind = index + 1 < length ? begins[index + 1] - x : Infinity;
    if (Math.min(before, behind) > NEAR / this.scale) return -1;
    return behind < before ? index + 1 : index;
  }
  // Called when somebody points at a place.
  /** @type {(event: PointerEvent) => void} */
  hover(event) {
    const index = this.functionNear(this.at(this.canvasX(event)));
    if (index === this.hovered) return;
    this.hovered = index;
    this.describe(index >= 0 ? index : this.current);
    this.redraw();
  }
  endHover() {
    this.hovered = -1;
    this.describe(this.current);
    this.redraw();
  }
  /** @type {(event: PointerEvent) => void} */
  chooseUnder(event) {
    const x = this.at(this.canvasX(event)),
      index = this.functionNear(x);
    if (index < 0) return;
    const size = this.binary.size[index];
    const offset = clamped(Math.floor(x - this.binary.x[index]), 0, size - 1);
    this.chosen(index, this.scale * size > LEAST_TO_POINT_INTO ? offset : null);
  }

  listen() {
    this.gestures.listen();
    this.canvas.addEventListener("dblclick", (event) => this.zoom(DOUBLE_CLICK_ZOOM, this.at(this.canvasX(event))));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.small.addEventListener("pointerdown", (event) => {
      this.small.setPointerCapture(event.pointerId);
      this.seek(event);
    });
    this.small.addEventListener("pointermove", (event) => this.seek(event));
  }

  // Show what the overview has where somebody points, as long as a button is held.
  /** @type {(event: PointerEvent) => void} */
  seek(event) {
    if (!event.buttons) return;
    const {left} = this.small.getBoundingClientRect(),
      size = this.to - this.from;
    const part = (event.clientX - left - this.gutter) / (this.width - this.gutter);
    const middle = part * this.binary.lineLength;
    this.show(middle - size / 2, middle + size / 2);
  }

  /** @type {(event: KeyboardEvent) => void} */
  key(event) {
    if (isModified(event)) return;
    const size = this.to - this.from,
      last = this.binary.length - 1;
    /** @type {(index: number) => void} */
    const go = (index) => this.chosen(clamped(index, 0, last), null);
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowLeft: () => go(this.current - 1),
      ArrowRight: () => go(this.current + 1),
      Home: () => go(0),
      End: () => go(last),
      PageUp: () => this.show(this.from - size, this.to - size),
      PageDown: () => this.show(this.from + size, this.to + size),
      "+": () => this.zoom(ZOOM_IN),
      "=": () => this.zoom(ZOOM_IN),
      "-": () => this.zoom(ZOOM_OUT),
      0: () => this.show(0, this.binary.lineLength),
      Enter: () => this.showFunction(this.current),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
