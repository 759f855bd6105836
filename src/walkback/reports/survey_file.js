// The part of the page about one file: all its numbers, where it is, and what is to be said of its functions.
/** @import {Details} from "./survey_details.js" */
/** @import {Files} from "./survey_list.js" */
/** @import {Child} from "../pages/types.js" */
import {NONE, bytes, count, counted, html, known, maker, percent} from "../pages/common.js";
import {facts, part, smallTable} from "./survey_details.js";
import {partsOf, replacementOf, sizesOf, whatIfsOf} from "./survey_sizes.js";
import {nameAndPlace} from "./survey_words.js";

/** @type {Record<string, string>} */
const ABOUT = {uncovered: "cannot say", finding: "findings", different: "differences"};

/** @type {(files: Files, file: number) => HTMLElement} */
function placesOf(files, file) {
  const found = [];
  for (let place = files.first[file]; place < files.first[file + 1]; place++) {
    const its = files.words.package[files.package[place]];
    found.push(
      html(
        "li",
        {},
        html("bdi", {class: "mono"}, files.places[place]),
        its && html("span", {class: "quiet"}, html("bdi", {}, ` ${its}`)),
      ),
    );
  }
  return html(
    "ul",
    {class: "places names"},
    found.slice(0, 100),
    found.length > 100 && html("li", {class: "quiet"}, `and ${count(found.length - 100)} more`),
  );
}

/** @type {(details: Details, file: number) => HTMLElement | null} */
function sframeOf(details, file) {
  if (!details.number("sframe", file)) return null;
  /** @type {(name: string) => number | null} */
  const number = (name) => details.number(`sframe_${name}`, file);
  return part(
    "The SFrame that it has",
    facts([
      ["Version", details.word("sframe_versions", file)],
      ["Bytes", bytes(number("bytes"))],
      ["Functions", count(number("functions"))],
      ["Rows", count(number("rows"))],
      ["Code that it says as the call frame information does", bytes(number("equal_bytes"))],
      ["otherwise", bytes(number("different_bytes"))],
      ["only the call frame information", bytes(number("only_frames_bytes"))],
      ["only SFrame", bytes(number("only_sframe_bytes"))],
      ["Findings", count(number("findings"))],
      ["The worst", details.word("sframe_severity", file)],
      ["Error", details.word("sframe_error", file)],
    ]),
  );
}

// Functions with a reason, a group for each reason.
/** @type {(details: Details, file: number) => HTMLElement | null} */
function reasonsOf(details, file) {
  /** @type {number[][]} */
  const groups = [];
  for (let row = details.firstReason[file]; row < details.firstReason[file + 1]; row++) {
    // The first of each group has place 1, and is stored as 2.
    if (details.number("reason_place", row) === 1) groups.push([]);
    groups[groups.length - 1].push(row);
  }
  if (!groups.length) return null;
  /** @type {(rows: number[]) => number} */
  const rank = (rows) =>
    ["finding", "different", "uncovered"].indexOf(details.word("reason_about", rows[0])) * 10 -
    (details.number("reason_version", rows[0]) ?? 0);
  groups.sort((one, other) => rank(one) - rank(other));
  const shown = groups.map((rows) => {
    const first = rows[0],
      about = details.word("reason_about", first),
      version = details.number("reason_version", first);
    const total = details.number("reason_total", first),
      severity = details.word("reason_severity", first);
    const title = about === "uncovered" ? `Version ${version} ${ABOUT.uncovered}` : (ABOUT[about] ?? about);
    const code = details.word("reason_code", first),
      [message] = details.word("reason_message", first).split(": ");
    const list = rows.map((row) => [
      details.names[row] || NONE,
      details.address(row),
      bytes(details.number("reason_size", row)),
      [
        details.word("reason_section", row),
        about === "uncovered"
          ? details.word("reason_message", row).split(": ").slice(1).join(": ")
          : details.word("reason_message", row),
      ]
        .filter(Boolean)
        .join(", ") || NONE,
    ]);
    const words = list.some((row) => row[3] !== NONE);
    /** @type {[title: string, right: boolean][]} */
    const columns = [
      ["Function", false],
      ["At", true],
      ["Size", true],
      ["What", false],
    ];
    const number = about === "uncovered" ? counted(total, "function") : counted(total, "place");
    // What older versions cannot say is shown where it is wanted.
    return html(
      "details",
      {class: "reason", open: about !== "uncovered" || version === 3},
      html(
        "summary",
        {},
        html(
          "h4",
          {},
          `${title}: ${about === "uncovered" ? message : code}`,
          severity && html("span", {class: "bad"}, ` ${severity}`),
        ),
      ),
      html(
        "p",
        {class: "quiet"},
        `${number}${rows.length < (total ?? 0) ? `, of which these are the largest ${count(rows.length)}` : ""}`,
      ),
      smallTable(
        words ? columns : columns.slice(0, 3),
        list.map((row) => (words ? row : row.slice(0, 3))),
        title,
      ),
    );
  });
  return part("Functions to look at", ...shown);
}

// Damaged call frame information goes on behind the code that there is.
/** @type {(code: number, text: number) => string} */
const shareOfText = (code, text) => (code > text ? "more than all of it" : percent(code / text));
/** @type {(details: Details, file: number) => {name: string, parts: Child[]}} */
export function fileOf(details, file) {
  const {files} = details,
    [name] = nameAndPlace(files.name(file)),
    functions = files.number("functions", file);
  const pointers = files.number("fp_functions", file);
  /** @type {(title: string) => string} */
  const word = (title) => details.word(title, file);
  /** @type {(title: string) => number | null} */
  const number = (title) => details.number(title, file);
  const code = number("code_bytes"),
    text = number("text_bytes");
  const parts = [
    html(
      "p",
      {class: "quiet"},
      html(
        "bdi",
        {},
        [word("kind"), word("machine"), maker(word("producer"), word("producer_version"), word("language"))]
          .filter(Boolean)
          .join(" \u00b7 "),
      ),
    ),
    part("Where it is", placesOf(files, file)),
    sizesOf(details, file),
    reasonsOf(details, file),
    sframeOf(details, file),
    part(
      "What it is",
      facts([
        ["Outcome", word("outcome")],
        ["Error", word("error")],
        ["Kind", word("kind")],
        ["Architecture", word("machine")],
        ["Producer", [word("producer"), word("producer_version")].filter(Boolean).join(" ")],
        ["Evidence", word("producer_evidence")],
        ["All that left a mark", word("producers")],
        ["Language", word("language")],
        ["Linker", word("linker")],
        ["Build ID", files.buildId[file]],
        ["File", bytes(files.number("bytes", file))],
        ["Text", bytes(text)],
        [".eh_frame", bytes(number("eh_frame"))],
        [".eh_frame_hdr", bytes(number("eh_frame_hdr"))],
        [".debug_frame", bytes(number("debug_frame"))],
        ["Derived from", word("source")],
        ["Functions", count(functions)],
        ["Rows", count(number("rows"))],
        ["Their code", bytes(code)],
        ["Of the text", text && known(code) ? shareOfText(code, text) : ""],
        ["CFA from the frame pointer", functions ? `${count(pointers)}, ${percent((pointers ?? 0) / functions)}` : ""],
        ["Code where it is", known(number("fp_bytes")) && code ? percent((number("fp_bytes") ?? 0) / code) : ""],
        [
          "Save the caller's",
          functions ? `${count(number("fp_saved"))}, ${percent((number("fp_saved") ?? 0) / functions)}` : "",
        ],
        ["Of code that is not there", count(number("dead") || null)],
        ["Of no code", count(number("empty") || null)],
        ["Not readable", count(number("unreadable") || null)],
        ["Described by others", count(number("shadowed") || null)],
      ]),
    ),
    partsOf(details, file),
    whatIfsOf(details, file),
    replacementOf(details, file),
    html(
      "details",
      {},
      html("summary", {}, "SQL"),
      html(
        "pre",
        {tabindex: "0"},
        html(
          "code",
          {},
          ["files", "versions", "functions"]
            .map((table) => `SELECT * FROM ${table} WHERE content = '${details.contents[file]}';\n`)
            .join(""),
        ),
      ),
    ),
  ];
  return {name, parts};
}
