// What SFrame takes for one file: its versions, their parts, other formats, and what would replace .eh_frame.
/** @import {Details} from "./survey_details.js" */
/** @import {Chart} from "./types.js" */
import {NONE, bytes, count, counted, html, known, percent, ratio} from "../pages/common.js";
import {part} from "./survey_details.js";
import {drawInto} from "./survey_panels.js";
import {numberHeads, textTable} from "./survey_table.js";
import {VERSIONS} from "./survey_words.js";

const PART_NAMES = ["header", "index", "padding", "attributes", "starts", "info", "words", "other"];
const WHAT_IFS = {
  compact_index: "row counts of 16 bits, no padding",
  slim_header: "slim header for linking",
  section_per_text: "a section for each text section",
  section_per_text_slim: "each text section, with slim headers",
  section_per_function: "a section for each function",
  section_per_function_slim: "each function, with slim headers",
  shared_rows: "rows shared between functions",
  palette: "palette of rules",
  stack_deltas: "palette of rules, without functions",
};

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function sizesOf(details, file) {
  /** @type {(version: number) => boolean} */
  const isMade = (version) => known(details.files.number(`v${version}`, file));
  const rows = VERSIONS.filter(isMade).map((version) => sizeRow(details, file, version));
  const impossible = VERSIONS.filter((version) => !isMade(version)).flatMap((version) => {
    const reason = details.word(`impossible${version}`, file);
    return reason ? [html("p", {class: "quiet"}, `Version ${version} cannot be made: ${reason}.`)] : [];
  });
  if (!rows.length && !impossible.length) return null;
  const titles = ["Bytes", "Ratio", "Of the file", "Left out", "Of the functions", "Entries", "Rows", "Proved"];
  const table = rows.length > 0 && textTable(numberHeads(...titles), rows, "Sizes of each version");
  return part("Sizes", table, ...impossible);
}

// What a version takes that can be made.
/** @type {(details: Details, file: number, version: number) => string[]} */
function sizeRow(details, file, version) {
  const {files} = details,
    size = files.number(`v${version}`, file) ?? 0,
    frames = files.number("call_frames", file),
    fileSize = files.number("bytes", file),
    functions = files.number("functions", file) ?? 0;
  const lost = functions - (files.number(`covered${version}`, file) ?? 0);
  return [
    `Version ${version}`,
    bytes(size),
    frames ? ratio(size / frames) : NONE,
    fileSize ? percent(size / fileSize) : NONE,
    count(lost),
    functions ? percent(lost / functions) : NONE,
    count(details.number(`entries${version}`, file)),
    count(details.number(`rows${version}`, file)),
    details.number(`proved${version}`, file) ? "yes" : "no",
  ];
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function partsOf(details, file) {
  /** @type {Chart} */
  const figure = {
    title: "What the bytes are used for",
    sentence: "Parts of the section of each version",
    columns: [
      {name: "version", title: "", unit: "text", words: {}},
      {name: "part", title: "", unit: "text", words: {starts: "row starts", info: "info bytes", other: "unused"}},
      {name: "share", title: "", unit: "share", words: {}},
    ],
    drawing: {kind: "stack", label: "part", values: ["share"], panel: "version", span: null, axis: "", one: false},
    rows: [],
  };
  for (const version of VERSIONS) {
    const whole = details.files.number(`v${version}`, file);
    if (!whole) continue;
    for (const name of PART_NAMES) {
      const size = details.number(`${name}${version}`, file);
      if (size) figure.rows.push([`version ${version}`, name, size / whole]);
    }
  }
  if (!figure.rows.length) return null;
  const chart = html("div", {class: "chart"}),
    section = part(figure.title, chart);
  drawInto(figure, chart);
  return section;
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function whatIfsOf(details, file) {
  /** @type {(name: string, version: number) => string[]} */
  const sizeAndRatio = (name, version) => {
    const size = details.number(`${name}${version}`, file),
      whole = details.files.number(`v${version}`, file);
    return known(size) ? [bytes(size), ratio(whole ? size / whole : null)] : [NONE, NONE];
  };
  const rows = Object.entries(WHAT_IFS)
    .map(([name, words]) => [words, ...sizeAndRatio(name, 2), ...sizeAndRatio(name, 3)])
    .filter(([, ...values]) => values.some((value) => value !== NONE));
  if (!rows.length) return null;
  const heads = numberHeads("Version 2", "ratio", "Version 3", "ratio");
  return part("What other formats would take", textTable(heads, rows, "What other formats would take"));
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function replacementOf(details, file) {
  if (!known(details.number("exception_bytes", file))) return null;
  const rows = replacementRows(details, file);
  return part(
    "To replace .eh_frame, version 3 would also carry",
    textTable([...numberHeads("Bytes"), ["", false]], rows, "What a replacement would carry"),
  );
}

/** @type {(details: Details, file: number) => string[][]} */
function replacementRows(details, file) {
  /** @type {(name: string) => number} */
  const number = (name) => details.number(name, file) ?? 0;
  const frames = details.files.number("call_frames", file),
    own = details.files.number("v3", file) ?? 0;
  const exceptions = number("exception_bytes"),
    addedRows = number("added_row_bytes"),
    inRows = number("register_bytes"),
    inSets = number("numbered_bytes");
  /** @type {(title: string, registers: number) => string[]} */
  const wholeRow = (title, registers) => {
    const size = own + exceptions + addedRows + registers;
    return [title, bytes(size), `${frames ? ratio(size / frames) : NONE} of .eh_frame and .eh_frame_hdr`];
  };
  const personalities = counted(number("personality_functions"), "function"),
    registers = counted(number("register_functions"), "function");
  return [
    [
      "exceptions",
      bytes(exceptions),
      `${personalities} with a personality, ${count(number("lsda_functions"))} with an LSDA`,
    ],
    ["additional rows", bytes(addedRows), counted(number("added_rows"), "row")],
    ["other registers in rows", bytes(inRows), `${registers}, ${counted(number("register_rows"), "row")}`],
    ["or in numbered sets", bytes(inSets), counted(number("sets"), "set")],
    wholeRow("total", inRows),
    wholeRow("with numbered sets", inSets),
  ];
}
