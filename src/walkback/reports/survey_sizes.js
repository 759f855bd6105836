// What SFrame takes for one file: its versions, their parts, other formats, and what would replace .eh_frame.
/** @import {Details} from "./survey_details.js" */
/** @import {Chart} from "./types.js" */
import {NONE, bytes, count, counted, html, known, percent, ratio} from "../pages/common.js";
import {part, smallTable} from "./survey_details.js";
import {drawn} from "./survey_figures.js";

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
  const {files} = details,
    whole = files.number("call_frames", file),
    size = files.number("bytes", file);
  /** @type {string[][]} */
  const rows = [];
  /** @type {HTMLElement[]} */
  const parts = [];
  for (const version of [1, 2, 3]) {
    const its = files.number(`v${version}`, file),
      covered = files.number(`covered${version}`, file);
    const why = details.word(`impossible${version}`, file),
      functions = files.number("functions", file) ?? 0,
      lost = functions - (covered ?? 0);
    if (!known(its)) {
      if (why) parts.push(html("p", {class: "quiet"}, `Version ${version} cannot be made: ${why}.`));
      continue;
    }
    rows.push([
      `Version ${version}`,
      bytes(its),
      whole ? ratio(its / whole) : NONE,
      size ? percent(its / size) : NONE,
      count(lost),
      functions ? percent(lost / functions) : NONE,
      count(details.number(`entries${version}`, file)),
      count(details.number(`rows${version}`, file)),
      details.number(`proved${version}`, file) ? "yes" : "no",
    ]);
  }
  if (!rows.length) return parts.length ? part("Sizes", ...parts) : null;
  return part(
    "Sizes",
    smallTable(
      [
        ["", false],
        ["Bytes", true],
        ["Ratio", true],
        ["Of the file", true],
        ["Left out", true],
        ["Of its functions", true],
        ["Entries", true],
        ["Rows", true],
        ["Proved", true],
      ],
      rows,
      "Sizes of each version",
    ),
    ...parts,
  );
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function partsOf(details, file) {
  /** @type {Chart} */
  const figure = {
    title: "What the bytes are for",
    sentence: "Parts of the section of each version",
    columns: [
      {name: "version", title: "", unit: "text", words: {}},
      {name: "part", title: "", unit: "text", words: {starts: "row starts", info: "info bytes", other: "nothing"}},
      {name: "share", title: "", unit: "share", words: {}},
    ],
    drawing: {kind: "stack", label: "part", values: ["share"], panel: "version", span: null, axis: "", one: false},
    rows: [],
  };
  for (const version of [1, 2, 3]) {
    const whole = details.files.number(`v${version}`, file);
    if (!whole) continue;
    for (const name of PART_NAMES) {
      const its = details.number(`${name}${version}`, file);
      if (its) figure.rows.push([`version ${version}`, name, its / whole]);
    }
  }
  if (!figure.rows.length) return null;
  const holder = html("div", {class: "chart"}),
    found = part("What the bytes are for", holder);
  drawn(figure, holder);
  return found;
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function whatIfsOf(details, file) {
  const rows = Object.entries(WHAT_IFS)
    .map(([name, words]) => [
      words,
      ...[2, 3].flatMap((version) => {
        const its = details.number(`${name}${version}`, file),
          whole = details.files.number(`v${version}`, file);
        return known(its) ? [bytes(its), ratio(whole ? its / whole : null)] : [NONE, NONE];
      }),
    ])
    .filter((row) => row.slice(1).some((value) => value !== NONE));
  return rows.length
    ? part(
        "What if",
        smallTable(
          [
            ["", false],
            ["Version 2", true],
            ["ratio", true],
            ["Version 3", true],
            ["ratio", true],
          ],
          rows,
          "What other formats would take",
        ),
      )
    : null;
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
export function replacementOf(details, file) {
  /** @type {(name: string) => number} */
  const number = (name) => details.number(name, file) ?? 0;
  if (!known(details.number("exception_bytes", file))) return null;
  const whole = details.files.number("call_frames", file),
    own = details.files.number("v3", file);
  const total = (own ?? 0) + number("exception_bytes") + number("added_row_bytes");
  /** @type {(value: number) => string} */
  const against = (value) => (whole ? ratio(value / whole) : NONE);
  return part(
    "To replace .eh_frame, version 3 would also carry",
    smallTable(
      [
        ["", false],
        ["Bytes", true],
        ["", false],
      ],
      [
        [
          "exceptions",
          bytes(number("exception_bytes")),
          `${counted(number("personality_functions"), "function")} with a personality, ` +
            `${count(number("lsda_functions"))} with an LSDA`,
        ],
        ["rows that are added", bytes(number("added_row_bytes")), counted(number("added_rows"), "row")],
        [
          "other registers in rows",
          bytes(number("register_bytes")),
          `${counted(number("register_functions"), "function")}, ${counted(number("register_rows"), "row")}`,
        ],
        ["or in numbered sets", bytes(number("numbered_bytes")), counted(number("sets"), "set")],
        [
          "all together",
          bytes(total + number("register_bytes")),
          `${against(total + number("register_bytes"))} of .eh_frame and .eh_frame_hdr`,
        ],
        [
          "with numbered sets",
          bytes(total + number("numbered_bytes")),
          `${against(total + number("numbered_bytes"))} of .eh_frame and .eh_frame_hdr`,
        ],
      ],
      "What a replacement would carry",
    ),
  );
}
