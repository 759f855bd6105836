// What a file has and what it would take, at a glance.
/** @import {Binary} from "./binary_data.js" */
/** @import {Proof} from "./binary_proof.js" */
/** @import {Baseline} from "./binary_sizes.js" */
/** @import {Origin, SFrame} from "./types.js" */
import {byId, bytes, count, counted, html, maker, percent, themeButton} from "../pages/common.js";
import {notes} from "./binary_notes.js";
import {baseline, sizes} from "./binary_sizes.js";

/** @type {Record<string, string>} */
const KIND_WORDS = {
  program: "Program",
  library: "Shared library",
  object: "Object file",
  module: "Kernel module",
  core: "Core file",
};

/** @type {(binary: Binary) => void} */
export function fillHead(binary) {
  byId("kind").textContent = `${KIND_WORDS[binary.kind] ?? "ELF file"} for ${binary.machine.name}`;
  byId("file").textContent = binary.file;
  const buildId = binary.buildId ? `build ID ${binary.buildId}` : "no build ID";
  byId("identity").replaceChildren(
    bytes(binary.fileBytes),
    html("span", {class: "between"}, " \u00b7 "),
    html("span", {class: "build-id"}, buildId),
  );
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
    source && `identified by ${source}`,
    producers.length > 1 && `traces of ${producers.join(", ")}`,
    linker && `linked by ${linker}`,
  ]
    .filter(Boolean)
    .join(" \u00b7 ");
}

/** @type {(title: string, value: string, note: string, mark?: string) => HTMLElement} */
function tile(title, value, note, mark = "") {
  return html(
    "div",
    {class: "tile panel"},
    html("p", {class: "quiet"}, title),
    html("p", {class: `value ${mark}`}, value.replaceAll(" %", "\u00a0%")),
    html("p", {class: "quiet note"}, note.replaceAll(" %", "\u00a0%")),
  );
}

/** @type {(binary: Binary, base: Baseline) => HTMLElement[]} */
function tiles(binary, base) {
  const {counts} = binary;
  // In a damaged file sections can overlap.
  const part = counts.codeBytes <= binary.textBytes ? `, ${percent(counts.codeBytes / binary.textBytes)}` : "";
  const runs = binary.textBytes ? `of ${bytes(binary.textBytes)} of code${part}` : "";
  const pieces = binary.length > counts.functions ? `in ${count(binary.length)} pieces, ` : "";
  const all = [
    tile("Functions", count(counts.functions), `${pieces}with ${counted(counts.rows, "row")} in ${binary.tables}`),
    tile("Described code", bytes(counts.codeBytes), runs),
  ];
  if (base.total) {
    const isEach = base.compared && counts.functions;
    const each = isEach ? `${(base.total / counts.functions).toFixed(1)} bytes per function` : "";
    all.push(tile(base.name, bytes(base.total), each));
  }
  if (binary.proof) all.push(proofTile(binary.proof));
  all.push(...newestTiles(binary, base));
  if (binary.sframe) all.push(sframeTile(binary, binary.sframe));
  return all;
}

// How much of the code proves the table, and how many functions are wrong.
/** @type {(proof: Proof) => HTMLElement} */
function proofTile({meta}) {
  const {functionsWrong: wrong, proved, reached} = meta;
  const words = wrong ? `${counted(wrong, "function")} with a wrong rule` : "of the instructions; no rule is wrong";
  const share = reached ? proved / reached : null;
  return tile("Proved by the code", percent(share), words, wrong ? "bad" : share === 1 ? "good" : "");
}

// What the newest version that can be made would take, and what it would cover.
/** @type {(binary: Binary, base: Baseline) => HTMLElement[]} */
function newestTiles({counts, tables, versions}, base) {
  const newest = versions.filter(({impossible}) => !impossible).at(-1);
  if (!newest) return [];
  const share = base.compared ? `${percent(newest.bytes / base.compared)} of ${base.name}` : "";
  const size = tile(`SFrame V${newest.version} would take`, bytes(newest.bytes), share);
  if (!counts.functions) return [size];
  const missing = counts.functions - newest.covered,
    covered = percent(newest.covered / counts.functions);
  const words = missing ? `${counted(missing, "function")} left out` : `every function in ${tables}`;
  return [size, tile(`V${newest.version} would cover`, covered, words, missing ? "warn" : "good")];
}

/** @type {(binary: Binary, sframe: SFrame) => HTMLElement} */
function sframeTile({tables}, sframe) {
  const name = `Existing ${sframe.name}`;
  const what = `V${sframe.versions.join(", V")}, ${counted(sframe.functions, "entry", "entries")} in its index`;
  if (!sframe.compared) return tile(name, bytes(sframe.bytes), what);
  const [, equal, different, onlyFrames, onlySFrame] = sframe.compared,
    whole = equal + different + onlyFrames + onlySFrame,
    mark = different + onlySFrame ? "bad" : onlyFrames ? "warn" : "good";
  const words = `${what}; agrees with ${tables} in ${percent(whole ? equal / whole : null)} of the code`;
  return tile(name, bytes(sframe.bytes), words, mark);
}
