// Moves through the code by address: by mouse, by finger and by keys.
/** @import {Binary} from "./binary_data.js" */
import {bytes, counted, html} from "../pages/common.js";
import {LineDrawing} from "./binary_lanes.js";

export class CodeLine extends LineDrawing {
  // `chosen(index, offset)` is called when somebody chooses a function; without an offset the function is meant.
  /** @param {Binary} binary @param {(index: number, offset: number | null) => void} chosen */
  constructor(binary, chosen) {
    super(binary);
    this.chosen = chosen;
    this.told = html("p", {id: "line-told", class: "told", "aria-live": "polite"});
    const buttons = html(
      "div",
      {class: "zoom screen"},
      this.button("\u2212", "Zoom out", () => this.zoom(2)),
      this.button("+", "Zoom in", () => this.zoom(0.5)),
      this.button("Function", "Show the chosen function", () => this.showFunction(this.current)),
      this.button("All", "Show all code", () => this.show(0, binary.lineLength)),
    );
    this.element.prepend(html("div", {class: "bar"}, this.told, buttons));
    this.listen();
  }

  /** @type {(text: string, title: string, onclick: () => void) => HTMLElement} */
  button(text, title, onclick) {
    return html("button", {type: "button", class: "small", title, "aria-label": title, onclick}, text);
  }

  /** @type {(from: number, to: number) => void} */
  show(from, to) {
    const whole = this.binary.lineLength,
      least = Math.min(whole, 24);
    const size = Math.max(least, Math.min(whole, to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(whole - size, middle - size / 2));
    this.to = this.from + size;
    this.redraw();
  }
  /** @type {(factor: number, around?: number | null) => void} */
  zoom(factor, around = null) {
    const its = this.current,
      chosen = its >= 0 && this.inSight(its);
    const middle = chosen ? (this.binary.x[its] + this.binary.xEnd[its]) / 2 : (this.from + this.to) / 2;
    const size = this.to - this.from,
      where = around ?? middle;
    const part = around === null ? 0.5 : (where - this.from) / size;
    this.show(where - size * factor * part, where + size * factor * (1 - part));
  }
  /** @type {(index: number) => boolean} */
  inSight(index) {
    return this.binary.xEnd[index] > this.from && this.binary.x[index] < this.to;
  }
  /** @type {(index: number) => void} */
  showFunction(index) {
    if (index < 0) return;
    const left = this.binary.x[index],
      right = this.binary.xEnd[index],
      around = Math.max((right - left) * 0.35, 8);
    this.show(left - around, right + around);
  }

  // Of a function that was chosen elsewhere.
  /** @type {(index: number) => void} */
  select(index) {
    this.current = index;
    this.hovered = -1;
    if (index >= 0 && !this.inSight(index)) {
      const size = this.to - this.from,
        middle = (this.binary.x[index] + this.binary.xEnd[index]) / 2;
      this.show(middle - size / 2, middle + size / 2);
    }
    this.describe(index);
    this.redraw();
  }

  /** @type {(index: number) => void} */
  describe(index) {
    const binary = this.binary;
    if (index < 0) {
      this.told.replaceChildren(html("span", {class: "quiet"}, "Point at a function, or choose one."));
      return;
    }
    const place = binary.place(binary.start[index], binary.text[index]);
    const words = [place, bytes(binary.size[index]), counted(binary.rows.count(index), "row")];
    const reason = this.version ? binary.reasonOf(index, this.version) : null;
    if (reason) words.push(`not in V${this.version}: ${reason[1]}`);
    this.told.replaceChildren(
      html("b", {class: "mono"}, binary.name(index)),
      html("span", {class: "quiet number"}, words.join(" \u00b7 ")),
    );
  }

  /** @type {(event: PointerEvent) => [index: number, offset: number]} */
  under(event) {
    const x = this.at(event.clientX - this.canvas.getBoundingClientRect().left);
    let index = this.binary.before(x);
    if (index >= 0 && x >= this.binary.xEnd[index]) {
      // The nearest within some pixels, since most are smaller than that.
      const near = 4 / this.scale,
        before = x - this.binary.xEnd[index];
      const next = index + 1 < this.binary.length ? this.binary.x[index + 1] - x : Infinity;
      index = Math.min(before, next) > near ? -1 : next < before ? index + 1 : index;
    }
    if (index < 0) return [index, 0];
    return [index, Math.max(0, Math.min(this.binary.size[index] - 1, Math.floor(x - this.binary.x[index])))];
  }

  listen() {
    const canvas = this.canvas;
    /** @type {Map<number, number>} */
    const fingers = new Map();
    let moved = 0;
    /** @type {number | null} */
    let pinch = null;
    canvas.addEventListener("pointerdown", (event) => {
      fingers.set(event.pointerId, event.clientX);
      canvas.setPointerCapture(event.pointerId);
      moved = 0;
      pinch = null;
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      if (before === undefined) {
        if (event.pointerType === "touch") return;
        const [index] = this.under(event);
        if (index !== this.hovered) {
          this.hovered = index;
          this.describe(index >= 0 ? index : this.current);
          this.redraw();
        }
        return;
      }
      fingers.set(event.pointerId, event.clientX);
      if (fingers.size === 2) {
        const [one, other] = fingers.values(),
          apart = Math.max(Math.abs(one - other), 8);
        const left = canvas.getBoundingClientRect().left;
        if (pinch) this.zoom(pinch / apart, this.at((one + other) / 2 - left));
        pinch = apart;
        moved = 99;
        return;
      }
      const away = event.clientX - before;
      moved += Math.abs(away);
      if (moved > 4) this.show(this.from - away / this.scale, this.to - away / this.scale);
    });
    /** @type {(event: PointerEvent) => void} */
    const up = (event) => {
      if (fingers.delete(event.pointerId) && moved <= 4 && event.type === "pointerup") {
        const [index, offset] = this.under(event);
        // Where a function is too small to be pointed into, it is the function that is meant.
        if (index >= 0) this.chosen(index, this.scale * this.binary.size[index] > 40 ? offset : null);
      }
      pinch = null;
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => {
      this.hovered = -1;
      this.describe(this.current);
      this.redraw();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        const left = canvas.getBoundingClientRect().left;
        // The wheel alone scrolls the page.
        const away = event.deltaX / this.scale;
        if (event.ctrlKey || event.metaKey) this.zoom(2 ** (event.deltaY / 200), this.at(event.clientX - left));
        else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.show(this.from + away, this.to + away);
        else return;
        event.preventDefault();
      },
      {passive: false},
    );
    canvas.addEventListener("dblclick", (event) => {
      this.zoom(0.25, this.at(event.clientX - canvas.getBoundingClientRect().left));
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    /** @type {(event: PointerEvent) => void} */
    const seek = (event) => {
      if (!event.buttons) return;
      const box = this.small.getBoundingClientRect(),
        size = this.to - this.from;
      const x = ((event.clientX - box.left - this.gutter) / (this.width - this.gutter)) * this.binary.lineLength;
      this.show(x - size / 2, x + size / 2);
    };
    this.small.addEventListener("pointerdown", (event) => {
      this.small.setPointerCapture(event.pointerId);
      seek(event);
    });
    this.small.addEventListener("pointermove", seek);
  }

  /** @type {(event: KeyboardEvent) => void} */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const size = this.to - this.from,
      last = this.binary.length - 1;
    /** @type {(index: number) => void} */
    const go = (index) => this.chosen(Math.max(0, Math.min(last, index)), null);
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowLeft: () => go(this.current - 1),
      ArrowRight: () => go(this.current + 1),
      Home: () => go(0),
      End: () => go(last),
      PageUp: () => this.show(this.from - size, this.to - size),
      PageDown: () => this.show(this.from + size, this.to + size),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.show(0, this.binary.lineLength),
      Enter: () => this.showFunction(this.current),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}
