// What mouse and fingers do with the code by address: point, choose, pull, pinch and turn the wheel.
/** @import {CodeLine} from "./binary_line.js" */

const CLICK_MOVES = 4; // Who moves farther, in pixels, pulls and does not click.
const LEAST_APART = 8; // Of two fingers.
const WHEEL_DOUBLES = 200; // How far the wheel turns for twice the code.

export class Gestures {
  /** @param {CodeLine} line */
  constructor(line) {
    this.line = line;
    // Where fingers and buttons are held, and how far they have moved since.
    /** @type {Map<number, number>} */
    this.held = new Map();
    this.moved = 0;
    // How far two fingers were apart last.
    /** @type {number | null} */
    this.apart = null;
  }

  listen() {
    const {line} = this,
      {canvas} = line;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => line.endHover());
    canvas.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
  }

  /** @type {(event: PointerEvent) => void} */
  down(event) {
    this.held.set(event.pointerId, event.clientX);
    this.line.canvas.setPointerCapture(event.pointerId);
    this.moved = 0;
    this.apart = null;
  }

  /** @type {(event: PointerEvent) => void} */
  move(event) {
    const before = this.held.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") this.line.hover(event);
      return;
    }
    this.held.set(event.pointerId, event.clientX);
    if (this.held.size === 2) this.pinch();
    else this.pull(event.clientX - before);
  }

  pinch() {
    const {line} = this,
      [one, other] = this.held.values();
    const apart = Math.max(Math.abs(one - other), LEAST_APART),
      middle = (one + other) / 2 - line.canvas.getBoundingClientRect().left;
    if (this.apart) line.zoom(this.apart / apart, line.at(middle));
    this.apart = apart;
    this.moved = Infinity;
  }

  /** @type {(pixels: number) => void} */
  pull(pixels) {
    this.moved += Math.abs(pixels);
    if (this.moved > CLICK_MOVES) this.shift(-pixels);
  }

  /** @type {(pixels: number) => void} */
  shift(pixels) {
    const {line} = this,
      away = pixels / line.scale;
    line.show(line.from + away, line.to + away);
  }

  /** @type {(event: PointerEvent) => void} */
  up(event) {
    const wasHeld = this.held.delete(event.pointerId);
    if (wasHeld && this.moved <= CLICK_MOVES && event.type === "pointerup") this.line.chooseUnder(event);
    this.apart = null;
  }

  // The wheel alone scrolls the page.
  /** @type {(event: WheelEvent) => void} */
  wheel(event) {
    const {line} = this;
    if (event.ctrlKey || event.metaKey) line.zoom(2 ** (event.deltaY / WHEEL_DOUBLES), line.at(line.canvasX(event)));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.shift(event.deltaX);
    else return;
    event.preventDefault();
  }
}
