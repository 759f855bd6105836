// What a file has and what it would take, at a glance.
/** @import {Binary} from "./binary_data.js" */
/** @import {Origin, SFrame, SizeParts} from "./types.js" */
import {byId, bytes, count, counted, html, maker, percent, svg, themeButton} from "../pages/common.js";
import {otherText} from "./binary_function.js";

// The parts of a section: their names, what they are called, and their colours.
/** @type {[name: keyof SizeParts, words: string, colour: string][]} */
const PARTS = [
  ["header", "header", "--c1"],
  ["index", "index", "--c2"],
  ["padding", "padding in the index", "--c7"],
  ["attributes", "attributes", "--c3"],
  ["starts", "row starts", "--c4"],
  ["info", "info bytes", "--c5"],
  ["words", "words", "--c6"],
  ["other", "belonging to nothing", "--bad"],
];
/** @type {Record<string, string>} */
const KIND_WORDS = {
  program: "Program",
  library: "Shared library",
  object: "Object file",
  module: "Kernel module",
  core: "Core file",
};
const MOST_OUTSIDE = 50;

/** @typedef {{name: string, parts: [name: string, size: number][], total: number}} Baseline */
/** @typedef {[words: string, size: number, colour: string]} BarPart */
/** @typedef {{name: string, total: number | null, parts: BarPart[], impossible?: string}} Bar */

/** @type {(binary: Binary) => void} */
export function fillHead(binary) {
  byId("kind").textContent = `${KIND_WORDS[binary.kind] ?? "ELF file"} for ${binary.machine.name}`;
  byId("file").textContent = binary.file;
  const buildId = binary.buildId ? `build ID ${binary.buildId}` : "no build ID";
  byId("identity").textContent = `${bytes(binary.fileBytes)} \u00b7 ${buildId}`;
  byId("origin").textContent = originText(binary.origin);
  byId("theme").replaceChildren(themeButton());
  const base = baseline(binary);
  byId("tiles").replaceChildren(...tiles(binary, base));
  byId("sizes").replaceChildren(...sizes(binary, base));
  byId("notes").replaceChildren(...notes(binary));
}

/** @type {(origin: Origin) => string} */
function originText({producer, version, language, evidence, producers, linker}) {
  const source = evidence === "frames" ? "the style of its call frame information" : evidence;
  return [
    maker(producer, version, language),
    source && `known by ${source}`,
    producers.length > 1 && `with marks of ${producers.join(", ")}`,
    linker && `linked by ${linker}`,
  ]
    .filter(Boolean)
    .join(" \u00b7 ");
}

// What SFrame is compared with.
/** @type {(binary: Binary) => Baseline} */
function baseline({frames, source}) {
  const names = source === ".debug_frame" ? [".debug_frame"] : [".eh_frame", ".eh_frame_hdr"];
  /** @type {[name: string, size: number][]} */
  const sized = names.map((name) => [name, frames[name]]);
  const parts = sized.filter(([, size]) => size);
  return {
    name: parts.map(([name]) => name).join(" + ") || source,
    parts,
    total: parts.reduce((sum, [, size]) => sum + size, 0),
  };
}

/** @type {(title: string, value: string, note: string, mark?: string) => HTMLElement} */
function tile(title, value, note, mark = "") {
  return html(
    "div",
    {class: "tile panel"},
    html("p", {class: "quiet"}, title),
    html("p", {class: `value ${mark}`}, value),
    html("p", {class: "quiet note"}, note),
  );
}

/** @type {(binary: Binary, base: Baseline) => HTMLElement[]} */
function tiles(binary, base) {
  const {counts} = binary,
    newest = binary.versions.filter(({impossible}) => !impossible).at(-1);
  // In a damaged file sections can overlap.
  const part = counts.codeBytes <= binary.textBytes ? `, ${percent(counts.codeBytes / binary.textBytes)}` : "";
  const runs = binary.textBytes ? `of ${bytes(binary.textBytes)} that can run${part}` : "";
  const pieces = binary.length > counts.functions ? `in ${count(binary.length)} pieces, ` : "";
  const its = [
    tile("Functions", count(counts.functions), `${pieces}with ${counted(counts.rows, "row")} in ${binary.source}`),
    tile("Code that they describe", bytes(counts.codeBytes), runs),
  ];
  if (base.total) {
    const each = counts.functions ? `${(base.total / counts.functions).toFixed(1)} bytes a function` : "";
    its.push(tile(base.name, bytes(base.total), each));
  }
  if (newest) {
    const share = base.total ? `${percent(newest.bytes / base.total)} of ${base.name}` : "";
    its.push(tile(`SFrame V${newest.version} would take`, bytes(newest.bytes), share));
  }
  if (newest && counts.functions) {
    const missing = counts.functions - newest.covered;
    const words = missing ? `${counted(missing, "function")} cannot be said` : `every function in ${binary.source}`;
    const share = percent(newest.covered / counts.functions);
    its.push(tile(`V${newest.version} would cover`, share, words, missing ? "warn" : "good"));
  }
  if (binary.sframe) its.push(sframeTile(binary, binary.sframe));
  return its;
}

/** @type {(binary: Binary, sframe: SFrame) => HTMLElement} */
function sframeTile({source}, sframe) {
  const name = `${sframe.name} that it has`;
  const what = `V${sframe.versions.join(", V")}, ${counted(sframe.functions, "entry", "entries")} in its index`;
  if (!sframe.compared) return tile(name, bytes(sframe.bytes), what);
  const [, equal, different, frames, others] = sframe.compared,
    all = equal + different + frames + others;
  const words = `${what}; equal to ${source} at ${percent(all ? equal / all : null)} of code`;
  return tile(name, bytes(sframe.bytes), words, equal === all ? "good" : "bad");
}

// Each table as a bar: its name, its bytes, what they are for, and why there is none.
/** @type {(binary: Binary, base: Baseline) => HTMLElement[]} */
function sizes(binary, base) {
  /** @type {Bar[]} */
  const bars = [];
  /** @type {(name: string, total: number | null, parts: BarPart[], impossible?: string) => void} */
  const add = (name, total, parts, impossible) => bars.push({name, total, parts, impossible});
  /** @type {BarPart[]} */
  const ofBase = base.parts.map(([name, size], place) => [name, size, place ? "--c8" : "--eh"]);
  if (base.total) add(base.name, base.total, ofBase);
  for (const {version, impossible, bytes: total, parts} of binary.versions) {
    if (impossible) add(`SFrame V${version}`, null, [], impossible);
    else add(`SFrame V${version}`, total, partList(parts));
  }
  if (binary.sframe) add(`${binary.sframe.name} that it has`, binary.sframe.bytes, partList(binary.sframe.parts));
  const most = Math.max(1, ...bars.map(({total}) => total ?? 0));
  const used = new Map(bars.flatMap(({parts}) => parts.map(([words, , colour]) => [words, colour])));
  return [
    html("h3", {}, "What the tables take"),
    ...bars.map((bar) => sizeBar(bar, most, bar.name === base.name ? 0 : base.total)),
    html(
      "ul",
      {class: "legend", "aria-label": "What the bytes are for"},
      [...used].map(([words, colour]) => legendItem(`var(${colour})`, words)),
    ),
    sizeTable(
      bars.filter(({total}) => total !== null),
      [...used.keys()],
    ),
  ];
}

/** @type {(colour: string, words: string) => HTMLElement} */
export function legendItem(colour, words) {
  const swatch = html("i", {class: "swatch"});
  swatch.style.background = colour;
  return html("li", {}, swatch, words);
}

/** @type {(parts: SizeParts) => BarPart[]} */
const partList = (parts) =>
  PARTS.filter(([name]) => parts[name]).map(([name, words, colour]) => [words, parts[name], colour]);

/** @type {(bar: Bar, most: number, base: number) => HTMLElement} */
function sizeBar({name, total, parts, impossible}, most, base) {
  const share = base && total !== null ? html("span", {class: "quiet"}, ` ${percent(total / base)}`) : null;
  return html(
    "div",
    {class: "size"},
    html("span", {class: "label"}, name),
    impossible ? html("span", {class: "quiet"}, impossible) : stacked(name, parts, most),
    html("span", {class: "amount number"}, total === null ? "" : bytes(total), share),
  );
}

/** @type {(name: string, parts: BarPart[], most: number) => SVGElement} */
function stacked(name, parts, most) {
  let x = 0;
  const rects = parts.map(([, size, colour]) => {
    const its = svg("rect", {x: `${(100 * x) / most}%`, y: 0, width: `${(100 * size) / most}%`, height: "100%"});
    its.style.fill = `var(${colour})`;
    x += size;
    return its;
  });
  const words = parts.map(([part, size]) => `${part} ${bytes(size)}`).join(", ");
  return svg("svg", {class: "sizebar", role: "img", "aria-label": `${name}: ${words}`}, rects);
}

/** @type {(bars: Bar[], words: string[]) => HTMLElement} */
function sizeTable(bars, words) {
  /** @type {(value: number | null | undefined) => HTMLElement} */
  const cell = (value) => html("td", {class: "right"}, count(value));
  const head = html(
    "tr",
    {},
    html("th", {scope: "col"}, "Bytes"),
    bars.map(({name}) => html("th", {scope: "col", class: "right"}, name)),
  );
  const rows = words.map((word) =>
    html(
      "tr",
      {},
      html("th", {scope: "row"}, word),
      bars.map(({parts}) => cell(parts.find(([one]) => one === word)?.[1])),
    ),
  );
  const sum = html(
    "tr",
    {},
    html("th", {scope: "row"}, "together"),
    bars.map(({total}) => cell(total)),
  );
  const box = {class: "scroll", tabindex: 0, role: "region", "aria-label": "Bytes of the tables"};
  return html(
    "details",
    {},
    html("summary", {}, "As a table"),
    html("div", box, html("table", {}, html("thead", {}, head), html("tbody", {}, rows, sum))),
  );
}

/** @type {(binary: Binary) => HTMLElement[]} */
function notes(binary) {
  const {counts, unplaced, source, unreadable} = binary;
  /** @type {(string | HTMLElement)[]} */
  const its = [];
  if (unreadable) its.push(`The SFrame that the file has cannot be read: ${unreadable}.`);
  /** @type {(number: number, one: string, many: string) => void} */
  const say = (number, one, many) => {
    if (number) its.push(`${counted(number, "entry", "entries")} of ${source} ${number === 1 ? one : many}.`);
  };
  say(counts.dead, "describes code that is not in the file", "describe code that is not in the file");
  say(counts.empty, "describes no code", "describe no code");
  say(counts.shadowed, "describes code for which another holds", "describe code for which others hold");
  say(counts.unplaced, "cannot be read", "cannot be read");
  if (counts.unplaced)
    its.push(
      shortList(
        unplaced.map(([, reason]) => reason),
        counts.unplaced,
      ),
    );
  if (binary.length > counts.functions)
    its.push(
      `The list has ${count(binary.length)} pieces, since some functions are in several, ` +
        "as the procedure linkage table is.",
    );
  if (counts.beyond)
    its.push(
      `${counted(counts.beyond, "function")} ${counts.beyond === 1 ? "goes" : "go"} on behind the code of the file. ` +
        "What is behind does not count.",
    );
  if (binary.sframe && binary.stretches.outside.length) its.push(outsideNote(binary, binary.sframe));
  return its.length
    ? [
        html(
          "ul",
          {class: "notes quiet"},
          its.map((one) => html("li", {}, one)),
        ),
      ]
    : [];
}

/** @type {(texts: string[], all: number) => HTMLElement} */
function shortList(texts, all) {
  return html(
    "ul",
    {class: "names"},
    texts.map((text) => html("li", {class: "mono"}, text)),
    all > texts.length && html("li", {}, `and ${count(all - texts.length)} more`),
  );
}

// Code that only .sframe describes belongs to no function of the list.
/** @type {(binary: Binary, sframe: SFrame) => HTMLElement} */
function outsideNote(binary, sframe) {
  const {outside} = binary.stretches;
  const texts = outside.slice(0, MOST_OUTSIDE).map((its) => {
    const section = sframe.sections[binary.stretches.section[its] - 1];
    const place = `${section ? `${section}+` : ""}0x${binary.stretches.start[its].toString(16)}`;
    return `${place}, ${bytes(binary.stretches.size[its])}: ${otherText(binary, its)}`;
  });
  return html(
    "details",
    {},
    html("summary", {}, `${counted(outside.length, "stretch", "stretches")} of code only in ${sframe.name}`),
    shortList(texts, outside.length),
  );
}
