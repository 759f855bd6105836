/** @import {FlameData, FlameTree} from "./types.js" */
import {KINDS, STEPS, colours, legendOf} from "./flamegraph_colours.js";
import {ancestor, deepest, levelOf, nodeAt, sibling, widestChild} from "./flamegraph_places.js";
import {callTree, invertedTree, otherSide} from "./flamegraph_tree.js";

/** @type {(id: string) => HTMLElement} */
const element = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
/** @type {FlameData} */
const data = JSON.parse(element("data").textContent);
const scroll = element("scroll"),
  tall = element("tall");
const canvas = /** @type {HTMLCanvasElement} */ (element("graph"));
const input = /** @type {HTMLInputElement} */ (element("search"));
const resetButton = /** @type {HTMLButtonElement} */ (element("reset"));
const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
const dark = matchMedia("(prefers-color-scheme: dark)");
const ROW = 20,
  GAP = 1,
  FONT = '12px ui-monospace, "DejaVu Sans Mono", monospace';

const calls = callTree(data);
/** @type {FlameTree | null} */
let inverted = null;
let tree = calls,
  zoom = 0,
  picked = -1,
  hovered = -1;
/**
 * Which names are looked for, if any are.
 *
 * @type {Uint8Array | null}
 */
let found = null;
let matched = 0;
let width = 0,
  height = 0,
  letter = 7;
// Of a difference: whether the widths are those of before.
let old = false;
let paint = colours(data, dark.matches);
showLegend();

function showLegend() {
  const items = legendOf(data, paint).map(([word, colour]) => {
    const item = document.createElement("li"),
      swatch = document.createElement("i");
    swatch.style.background = colour;
    item.append(swatch, word);
    return item;
  });
  element("legend").replaceChildren(...items);
}

// By how much the share of a node is larger after than before.
/** @type {(node: number) => number} */
const change = (node) => {
  /** @type {(side: ArrayLike<number>) => number} */
  const shareOf = (side) => (side[0] ? side[node] / side[0] : 0);
  const more = shareOf(tree.total) - shareOf(tree.was ?? []);
  return old ? -more : more;
};

/** @type {(node: number) => string} */
function changeColour(node) {
  // Relative to the largest change there is; small ones are made visible by the root.
  tree.largest ??= tree.name.reduce((most, _, its) => Math.max(most, Math.abs(change(its))), 1e-9);
  const its = change(node),
    part = Math.sqrt(Math.abs(its) / tree.largest);
  return paint.changes[STEPS + Math.round(Math.sign(its) * part * STEPS)];
}

/** @type {(node: number, left: number, right: number, top: number, faded: boolean) => void} */
function box(node, left, right, top, faded) {
  const its = right - left - (right - left > 3 ? GAP : 0);
  const hit = found !== null && found[tree.name[node]];
  const colour = data.before ? changeColour(node) : paint.fill[tree.name[node]];
  pen.fillStyle = node === 0 ? paint.root : hit ? paint.match : colour;
  pen.fillRect(left, top, its, ROW - GAP);
  if (faded || (found !== null && !hit)) {
    pen.fillStyle = paint.faint;
    pen.fillRect(left, top, its, ROW - GAP);
  }
  const letters = Math.floor((its - 6) / letter);
  if (letters >= 2) {
    const text = data.names[tree.name[node]];
    pen.fillStyle = paint.ink;
    pen.fillText(text.length <= letters ? text : text.slice(0, letters - 1) + "\u2026", left + 3, top + 14, its - 4);
  }
  if (node === picked || node === hovered) {
    pen.strokeStyle = paint.line;
    pen.lineWidth = node === picked ? 2 : 1;
    pen.strokeRect(left + 1, top + 1, Math.max(its - 2, 1), ROW - GAP - 2);
  }
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  const top = canvas.offsetTop,
    zoomLevel = levelOf(tree, zoom);
  const scale = width / (tree.total[zoom] || 1),
    from = tree.x[zoom],
    to = from + tree.total[zoom];
  const begin = Math.max(0, Math.floor(top / ROW));
  const end = Math.min(tree.first.length - 1, Math.ceil((top + height) / ROW));
  for (let level = begin; level < end; level++) {
    const y = level * ROW - top;
    if (level < zoomLevel) {
      box(ancestor(tree, zoom, level), 0, width, y, true);
      continue;
    }
    let node = Math.max(nodeAt(tree, level, from), tree.first[level]);
    if (level === zoomLevel) node = zoom;
    // Boxes too narrow to see are drawn together where they stand side by side.
    let thin = 0,
      thinEnd = -1;
    const flush = () => {
      pen.fillStyle = paint.root;
      if (thinEnd - thin >= 0.5) pen.fillRect(thin, y, thinEnd - thin, ROW - GAP);
      thinEnd = -1;
    };
    for (; node < tree.first[level + 1] && tree.x[node] < to; node++) {
      const left = (tree.x[node] - from) * scale,
        right = left + tree.total[node] * scale;
      if (left < -0.01) continue;
      if (thinEnd < left - 0.01 || right - left >= 0.5) {
        flush();
        thin = left;
      }
      if (right - left >= 0.5) box(node, left, right, y, false);
      else thinEnd = right;
    }
    flush();
  }
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    draw();
  });
}

function measure() {
  const ratio = window.devicePixelRatio || 1,
    rows = deepest(tree, zoom) * ROW;
  tall.style.height = `${rows}px`;
  width = tall.clientWidth;
  height = Math.min(scroll.clientHeight, rows);
  canvas.style.height = `${height}px`;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  pen.font = FONT;
  letter = pen.measureText("0123456789").width / 10;
  draw();
}

/** @type {(part: number, whole: number) => string} */
const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(2)} %` : "-");
/** @type {(weight: number) => string} */
function amount(weight) {
  if (data.unit === "nanoseconds") {
    /** @type {[size: number, unit: string][]} */
    const units = [
      [1e9, "s"],
      [1e6, "ms"],
      [1e3, "\u00b5s"],
    ];
    const [size, unit] = units.find(([least]) => weight >= least) ?? [1, "ns"];
    return `${(weight / size).toLocaleString("en", {maximumFractionDigits: 3})} ${unit}`;
  }
  return `${weight.toLocaleString("en")} ${weight === 1 ? data.unit.replace(/s$/, "") : data.unit}`;
}

function describe() {
  const node = hovered >= 0 ? hovered : picked >= 0 ? picked : zoom;
  const name = tree.name[node],
    whole = tree.total[0],
    module = data.modules[data.module[name]];
  element("name").textContent = data.names[name];
  const words = [`${amount(tree.total[node])}, ${share(tree.total[node], whole)} of all`];
  if (tree.was) {
    const moved = 100 * change(node);
    words.push(`${old ? "after" : "before"} ${share(tree.was[node], tree.was[0])}`);
    words.push(`${moved < 0 ? "\u2212" : "+"}${Math.abs(moved).toFixed(2)} points`);
  }
  if (zoom && node !== zoom) words.push(`${share(tree.total[node], tree.total[zoom])} of the zoomed`);
  if (tree === calls && tree.own[node]) words.push(`${amount(tree.own[node])} of its own`);
  if (node && data.kind[name]) words.push(KINDS[data.kind[name]]);
  if (module) words.push(module);
  element("numbers").textContent = words.join(" \u00b7 ");
}

/** @type {(node: number) => void} */
function show(node) {
  zoom = node;
  picked = node || -1;
  hovered = -1;
  resetButton.disabled = !zoom && !found;
  measure();
  describe();
}

function keepInView() {
  const top = levelOf(tree, picked) * ROW;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  else if (top + ROW > scroll.scrollTop + scroll.clientHeight - 16)
    scroll.scrollTop = top + ROW - scroll.clientHeight + 16;
}

/** @type {(node: number) => void} */
function pick(node) {
  picked = node;
  hovered = -1;
  keepInView();
  describe();
  redraw();
}

function search() {
  const wanted = input.value.trim();
  found = null;
  matched = 0;
  if (wanted) {
    /** @type {(text: string) => boolean} */
    let test = (text) => text.toLowerCase().includes(wanted.toLowerCase());
    try {
      const pattern = new RegExp(wanted, "i");
      test = (text) => pattern.test(text);
    } catch {
      /* What is no regular expression is looked for as it is. */
    }
    found = Uint8Array.from(data.names, (text) => (test(text) ? 1 : 0));
    found[0] = 0;
    const inside = new Uint8Array(tree.name.length);
    for (let node = 1; node < tree.name.length; node++) {
      if (inside[tree.parent[node]]) inside[node] = 1;
      else if (found[tree.name[node]]) {
        inside[node] = 1;
        matched += tree.total[node];
      }
    }
  }
  element("matched").textContent = found ? `${share(matched, tree.total[0])} matched` : "";
  resetButton.disabled = !zoom && !found;
  redraw();
}

function reset() {
  input.value = "";
  search();
  show(0);
  scroll.scrollTop = 0;
}

/** @type {(event: MouseEvent) => number} */
function nodeUnder(event) {
  const area = canvas.getBoundingClientRect();
  const level = Math.floor((event.clientY - area.top + canvas.offsetTop) / ROW);
  if (level < 0 || level >= tree.first.length - 1) return -1;
  if (level <= levelOf(tree, zoom)) return ancestor(tree, zoom, level);
  const x = tree.x[zoom] + ((event.clientX - area.left) / width) * tree.total[zoom];
  const node = nodeAt(tree, level, x);
  return node >= 0 && x < tree.x[node] + tree.total[node] ? node : -1;
}

canvas.addEventListener("pointermove", (event) => {
  if (event.pointerType === "touch") return;
  const node = nodeUnder(event);
  if (node === hovered) return;
  hovered = node;
  describe();
  redraw();
});
canvas.addEventListener("pointerleave", () => {
  hovered = -1;
  describe();
  redraw();
});
canvas.addEventListener("click", (event) => {
  const node = nodeUnder(event);
  if (node >= 0) show(node);
});
canvas.addEventListener("keydown", (event) => {
  const node = picked >= 0 ? picked : zoom;
  /** @type {Record<string, () => void>} */
  const moves = {
    ArrowUp: () => pick(node > 0 ? tree.parent[node] : 0),
    ArrowDown: () => pick(widestChild(tree, node)),
    ArrowLeft: () => pick(sibling(tree, node, -1, zoom)),
    ArrowRight: () => pick(sibling(tree, node, 1, zoom)),
    Enter: () => {
      show(node);
      keepInView();
    },
    Escape: () => {
      const was = zoom;
      if (!was) return reset();
      show(0);
      pick(was);
    },
  };
  if (event.ctrlKey || event.metaKey || event.altKey || !moves[event.key]) return;
  event.preventDefault();
  moves[event.key]();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input) {
    event.preventDefault();
    input.focus();
  }
});
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    input.value = "";
    search();
    canvas.focus();
  }
});
let typing = 0;
input.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, 120);
});
element("controls").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
resetButton.addEventListener("click", reset);
element("side").hidden = !data.before;
element("side").addEventListener("click", () => {
  old = !old;
  otherSide(calls);
  if (inverted) otherSide(inverted);
  element("side").setAttribute("aria-pressed", String(old));
  search();
  show(tree.total[zoom] ? zoom : 0);
});
element("invert").addEventListener("click", () => {
  tree = tree === calls ? (inverted ??= invertedTree(calls, data.names.length)) : calls;
  element("invert").setAttribute("aria-pressed", String(tree !== calls));
  search();
  show(0);
  scroll.scrollTop = 0;
});
scroll.addEventListener("scroll", redraw);
dark.addEventListener("change", () => {
  paint = colours(data, dark.matches);
  showLegend();
  redraw();
});
new ResizeObserver(measure).observe(scroll);
show(0);
