// The part of the page about one file: all its numbers, where it is, and what is to be said of its functions.
/** @import {Details} from "./survey_details.js" */
/** @import {Files} from "./survey_list.js" */
/** @import {Child} from "../pages/types.js" */
/** @import {Head} from "../pages/common.js" */
import {NONE, bytes, count, counted, folded, html, known, maker, percent} from "../pages/common.js";
import {facts, part} from "./survey_details.js";
import {partsOf, replacementOf, sizesOf, whatIfsOf} from "./survey_sizes.js";
import {textTable} from "./survey_table.js";
import {nameAndPlace} from "./survey_words.js";

const MOST_PLACES = 100;
const NEWEST_VERSION = 3;
/** @type {Record<string, string>} */
const ABOUT = {
  uncovered: "leaves out",
  finding: "findings",
  different: "differences",
  wrong: "contradicted by the code",
};
// Groups of reasons stand in this order, and within one the newest version is first.
const ABOUT_ORDER = ["wrong", "finding", "different", "uncovered"];
const ABOUT_RANK = 10;
const FIRST_OF_GROUP = 1;
const MESSAGE_PARTS = ": ";

/** @type {(files: Files, file: number) => HTMLElement} */
function placesOf(files, file) {
  /** @type {HTMLElement[]} */
  const items = [];
  for (let place = files.first[file]; place < files.first[file + 1]; place++) {
    const packageName = files.words.package[files.package[place]];
    items.push(
      html(
        "li",
        {},
        html("bdi", {class: "mono"}, files.places[place]),
        packageName && html("span", {class: "quiet"}, html("bdi", {}, ` ${packageName}`)),
      ),
    );
  }
  return html(
    "ul",
    {class: "places names"},
    items.slice(0, MOST_PLACES),
    items.length > MOST_PLACES && html("li", {class: "quiet"}, `and ${count(items.length - MOST_PLACES)} more`),
  );
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
function sframeOf(details, file) {
  if (!details.number("sframe", file)) return null;
  /** @type {(name: string) => number | null} */
  const number = (name) => details.number(`sframe_${name}`, file);
  return part(
    "Existing SFrame",
    facts([
      ["Version", details.word("sframe_versions", file)],
      ["Bytes", bytes(number("bytes"))],
      ["Functions", count(number("functions"))],
      ["Rows", count(number("rows"))],
      ["Code where it agrees with the call frame information", bytes(number("equal_bytes"))],
      ["Code where it differs", bytes(number("different_bytes"))],
      ["Code only in the call frame information", bytes(number("only_frames_bytes"))],
      ["Code only in SFrame", bytes(number("only_sframe_bytes"))],
      ["Findings", count(number("findings"))],
      ["Most severe", details.word("sframe_severity", file)],
      ["Error", details.word("sframe_error", file)],
    ]),
  );
}

// Functions with a reason, a group for each reason.
/** @type {(details: Details, file: number) => HTMLElement | null} */
function reasonsOf(details, file) {
  const groups = reasonGroups(details, file);
  return groups.length
    ? part("Findings and functions left out", ...groups.map((rows) => reasonOf(details, rows)))
    : null;
}

/** @type {(details: Details, file: number) => number[][]} */
function reasonGroups(details, file) {
  /** @type {number[][]} */
  const groups = [];
  for (let row = details.firstReason[file]; row < details.firstReason[file + 1]; row++) {
    if (details.number("reason_place", row) === FIRST_OF_GROUP) groups.push([]);
    groups[groups.length - 1].push(row);
  }
  /** @type {(rows: number[]) => number} */
  const rank = ([first]) =>
    ABOUT_ORDER.indexOf(details.word("reason_about", first)) * ABOUT_RANK -
    (details.number("reason_version", first) ?? 0);
  return groups.sort((one, other) => rank(one) - rank(other));
}

// The functions of a group, and what its reason is.
/** @type {(details: Details, rows: number[]) => HTMLElement} */
function reasonOf(details, rows) {
  const [first] = rows,
    about = details.word("reason_about", first),
    version = details.number("reason_version", first),
    total = details.number("reason_total", first),
    severity = details.word("reason_severity", first);
  const isUncovered = about === "uncovered";
  const title = isUncovered ? `Version ${version} ${ABOUT.uncovered}` : (ABOUT[about] ?? about);
  const [message] = details.word("reason_message", first).split(MESSAGE_PARTS);
  const words = `${title}: ${isUncovered ? message : details.word("reason_code", first)}`;
  const largest = rows.length < (total ?? 0) ? `; the largest ${count(rows.length)}` : "";
  // What older versions cannot say is shown where it is wanted.
  return html(
    "details",
    {class: "reason", open: !isUncovered || version === NEWEST_VERSION},
    html("summary", {}, html("h4", {}, words, severity && html("span", {class: "bad"}, ` ${severity}`))),
    html("p", {class: "quiet"}, `${counted(total, isUncovered ? "function" : "place")}${largest}`),
    reasonTable(details, rows, title),
  );
}

/** @type {(details: Details, rows: number[], title: string) => HTMLElement} */
function reasonTable(details, rows, title) {
  const cells = rows.map((row) => [
    details.names[row] || NONE,
    details.address(row),
    bytes(details.number("reason_size", row)),
    reasonWords(details, row) || NONE,
  ]);
  /** @type {Head[]} */
  const heads = [
    ["Function", false],
    ["At", true],
    ["Size", true],
    ["What", false],
  ];
  const what = heads.length - 1;
  if (cells.some((row) => row[what] !== NONE)) return textTable(heads, cells, title);
  return textTable(
    heads.slice(0, what),
    cells.map((row) => row.slice(0, what)),
    title,
  );
}

// What is said of one function, besides what is said of the group.
/** @type {(details: Details, row: number) => string} */
function reasonWords(details, row) {
  const message = details.word("reason_message", row),
    isUncovered = details.word("reason_about", row) === "uncovered";
  const own = isUncovered ? message.split(MESSAGE_PARTS).slice(1).join(MESSAGE_PARTS) : message;
  return [details.word("reason_section", row), own].filter(Boolean).join(", ");
}

// Damaged call frame information describes more code than there is.
/** @type {(code: number, text: number) => string} */
const shareOfText = (code, text) => (code > text ? "more than all of it" : percent(code / text));

/** @type {(details: Details, file: number) => HTMLElement} */
function identityOf(details, file) {
  /** @type {(name: string) => string} */
  const word = (name) => details.word(name, file);
  const made = maker(word("producer"), word("producer_version"), word("language"));
  const words = [word("kind"), word("machine"), made].filter(Boolean).join(" \u00b7 ");
  return html("p", {class: "quiet"}, html("bdi", {}, words));
}

/** @type {(details: Details, file: number) => HTMLElement} */
function propertiesOf(details, file) {
  const {files} = details;
  /** @type {(name: string) => string} */
  const word = (name) => details.word(name, file);
  /** @type {(name: string) => number | null} */
  const number = (name) => details.number(name, file);
  return part(
    "Properties",
    facts([
      ["Outcome", word("outcome")],
      ["Error", word("error")],
      ["Kind", word("kind")],
      ["Architecture", word("machine")],
      ["Producer", [word("producer"), word("producer_version")].filter(Boolean).join(" ")],
      ["Evidence", word("producer_evidence")],
      ["All producers found", word("producers")],
      ["Language", word("language")],
      ["Linker", word("linker")],
      ["Build ID", files.buildId[file]],
      ["File", bytes(files.number("bytes", file))],
      ["Code", bytes(number("text_bytes"))],
      [".eh_frame", bytes(number("eh_frame"))],
      [".eh_frame_hdr", bytes(number("eh_frame_hdr"))],
      [".debug_frame", bytes(number("debug_frame"))],
      ["Derived from", word("source")],
      ...describedCode(details, file),
      ["Entries for missing code", count(number("dead") || null)],
      ["Entries for no code", count(number("empty") || null)],
      ["Unreadable entries", count(number("unreadable") || null)],
      ["Overridden entries", count(number("shadowed") || null)],
    ]),
  );
}

// Functions and their code, and what of them has a frame pointer.
/** @type {(details: Details, file: number) => [title: string, value: string][]} */
function describedCode(details, file) {
  /** @type {(name: string) => number | null} */
  const number = (name) => details.number(name, file);
  const functions = details.files.number("functions", file),
    code = number("code_bytes"),
    text = number("text_bytes"),
    framedCode = number("fp_bytes");
  /** @type {(some: number | null) => string} */
  const ofFunctions = (some) => (functions ? `${count(some)}, ${percent((some ?? 0) / functions)}` : "");
  return [
    ["Functions", count(functions)],
    ["Rows", count(number("rows"))],
    ["Described code", bytes(code)],
    ...(number("from_cfi") === code ? [] : sourcesOf(number)),
    ["Of the code", text && known(code) ? shareOfText(code, text) : ""],
    ["CFA based on the frame pointer", ofFunctions(details.files.number("fp_functions", file))],
    ["Code with the CFA on it", known(framedCode) && code ? percent(framedCode / code) : ""],
    ["Functions that save the frame pointer", ofFunctions(number("fp_saved"))],
  ];
}

// How much code is described by each kind of table.
/** @type {(number: (name: string) => number | null) => [title: string, value: string][]} */
const sourcesOf = (number) => [
  ["By call frame information", bytes(number("from_cfi") || null)],
  ["By Go\u2019s table", bytes(number("from_go") || null)],
  ["By the ORC table", bytes(number("from_orc") || null)],
  ["By the code itself", bytes(number("from_code") || null)],
];

/** @type {(details: Details, file: number) => HTMLElement} */
function questionsOf(details, file) {
  const queries = ["files", "versions", "functions"].map(
    (table) => `SELECT * FROM ${table} WHERE content = '${details.contents[file]}';\n`,
  );
  return folded("SQL", html("pre", {tabindex: "0"}, html("code", {}, queries.join(""))));
}

/** @type {(details: Details, file: number) => {name: string, parts: Child[]}} */
export function fileOf(details, file) {
  const [name] = nameAndPlace(details.files.name(file));
  const parts = [
    identityOf(details, file),
    part("Location", placesOf(details.files, file)),
    sizesOf(details, file),
    reasonsOf(details, file),
    sframeOf(details, file),
    propertiesOf(details, file),
    partsOf(details, file),
    whatIfsOf(details, file),
    replacementOf(details, file),
    questionsOf(details, file),
  ];
  return {name, parts};
}
