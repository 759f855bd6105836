// The part of the page about one file: all its numbers, where it is, and what its functions tell.
const PART_NAMES = ["header", "index", "padding", "attributes", "starts", "info", "words", "other"];
const WHAT_IFS = {
  compact_index: "row counts of 16 bits, no padding", slim_header: "slim header for linking",
  section_per_text: "a section for each text section", section_per_text_slim: "each text section, with slim headers",
  section_per_function: "a section for each function", section_per_function_slim: "each function, with slim headers",
  shared_rows: "rows shared between functions", palette: "palette of rules", stack_deltas: "palette of rules, without functions",
};
const ABOUT = {uncovered: "cannot say", finding: "findings", different: "differences"};

// What there is to know of a file, read when the first one is opened.
class Details {
  constructor(files, columns) {
    this.files = files;
    this.columns = columns;
    this.kept = new Map();
    this.firstReason = sums(this.numbers("reasons"));
    this.names = columns.texts("reason_name", this.firstReason[files.count]);
    this.contents = columns.texts("content", files.count);
  }
  numbers(name) {
    if (!this.kept.has(name)) this.kept.set(name, this.columns.known.has(name) ? this.columns.numbers(name) : this.files.numbers(name));
    return this.kept.get(name);
  }
  number(name, row) {
    const value = this.numbers(name)[row];
    return value ? value - 1 : null;
  }
  word(name, row) {
    return this.files.words[name][this.numbers(name)[row]];
  }
  address(row) {
    const its = this.columns.known.get("reason_address")[row];
    return its ? address(BigInt(its) - 1n) : NONE;
  }
}

const facts = (pairs) => html("dl", {class: "facts"}, pairs.filter(([, value]) => value && value !== NONE && value !== "0 bytes")
  .map(([title, value]) => html("div", {class: value.length > 28 ? "long" : null}, html("dt", {}, title), html("dd", {}, html("bdi", {}, value)))));
const part = (title, ...children) => html("section", {}, html("h3", {}, title), ...children);
// A table of some columns: a title and a unit each.
function smallTable(columns, rows, caption) {
  return html("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${caption}`}, html("table", {},
    html("caption", {class: "heard"}, caption),
    html("thead", {}, html("tr", {}, columns.map(([title, right]) => html("th", {scope: "col", class: right ? "right" : null}, title)))),
    html("tbody", {}, rows.map((row) => html("tr", {}, row.map((value, place) => {
      const inner = html("bdi", {}, value);
      return place ? html("td", {class: columns[place][1] ? "right" : null}, inner) : html("th", {scope: "row"}, inner);
    }))))));
}

function placesOf(files, file) {
  const found = [];
  for (let place = files.first[file]; place < files.first[file + 1]; place++) {
    const its = files.words.package[files.package[place]];
    found.push(html("li", {}, html("bdi", {class: "mono"}, files.places[place]), its && html("span", {class: "quiet"}, html("bdi", {}, ` ${its}`))));
  }
  return html("ul", {class: "places names"}, found.slice(0, 100), found.length > 100 && html("li", {class: "quiet"}, `and ${count(found.length - 100)} more`));
}

function sizesOf(details, file) {
  const {files} = details, whole = files.number("call_frames", file), size = files.number("bytes", file);
  const rows = [], parts = [];
  for (const version of [1, 2, 3]) {
    const its = files.number(`v${version}`, file), covered = files.number(`covered${version}`, file);
    const why = details.word(`impossible${version}`, file), functions = files.number("functions", file);
    if (!known(its)) {
      if (why) parts.push(html("p", {class: "quiet"}, `Version ${version} cannot be made: ${why}.`));
      continue;
    }
    rows.push([`Version ${version}`, bytes(its), whole ? ratio(its / whole) : NONE, size ? percent(its / size) : NONE,
      count(functions - covered), functions ? percent((functions - covered) / functions) : NONE, count(details.number(`entries${version}`, file)),
      count(details.number(`rows${version}`, file)), details.number(`proved${version}`, file) ? "yes" : "no"]);
  }
  if (!rows.length) return parts.length ? part("Sizes", ...parts) : null;
  return part("Sizes", smallTable([["", false], ["Bytes", true], ["Ratio", true], ["Of the file", true], ["Left out", true], ["Of its functions", true],
    ["Entries", true], ["Rows", true], ["Proved", true]], rows, "Sizes of each version"), ...parts);
}

function partsOf(details, file) {
  const figure = {
    title: "What the bytes are for", sentence: "Parts of the section of each version",
    columns: [{name: "version", unit: "text", words: {}}, {name: "part", unit: "text", words: {starts: "row starts", info: "info bytes", other: "nothing"}},
      {name: "share", unit: "share", words: {}}],
    drawing: {kind: "stack", label: "part", values: ["share"], panel: "version", axis: "", one: false},
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
  const holder = html("div", {class: "chart"}), found = part("What the bytes are for", holder);
  drawn(figure, holder);
  return found;
}

function whatIfsOf(details, file) {
  const rows = Object.entries(WHAT_IFS).map(([name, words]) => [words, ...[2, 3].flatMap((version) => {
    const its = details.number(`${name}${version}`, file), whole = details.files.number(`v${version}`, file);
    return known(its) ? [bytes(its), ratio(its / whole)] : [NONE, NONE];
  })]).filter((row) => row.slice(1).some((value) => value !== NONE));
  return rows.length ? part("What if", smallTable([["", false], ["Version 2", true], ["ratio", true], ["Version 3", true], ["ratio", true]], rows, "What other formats would take")) : null;
}

function replacementOf(details, file) {
  const number = (name) => details.number(name, file);
  if (!known(number("exception_bytes"))) return null;
  const whole = details.files.number("call_frames", file), own = details.files.number("v3", file);
  const total = own + number("exception_bytes") + number("added_row_bytes");
  const against = (value) => (whole ? ratio(value / whole) : NONE);
  return part("To replace .eh_frame, version 3 would also carry", smallTable([["", false], ["Bytes", true], ["", false]], [
    ["exceptions", bytes(number("exception_bytes")), `${counted(number("personality_functions"), "function")} with a personality, ${count(number("lsda_functions"))} with an LSDA`],
    ["rows that are added", bytes(number("added_row_bytes")), counted(number("added_rows"), "row")],
    ["other registers in rows", bytes(number("register_bytes")), `${counted(number("register_functions"), "function")}, ${counted(number("register_rows"), "row")}`],
    ["or in numbered sets", bytes(number("numbered_bytes")), counted(number("sets"), "set")],
    ["all together", bytes(total + number("register_bytes")), `${against(total + number("register_bytes"))} of .eh_frame and .eh_frame_hdr`],
    ["with numbered sets", bytes(total + number("numbered_bytes")), `${against(total + number("numbered_bytes"))} of .eh_frame and .eh_frame_hdr`],
  ], "What a replacement would carry"));
}

function sframeOf(details, file) {
  if (!details.number("sframe", file)) return null;
  const number = (name) => details.number(`sframe_${name}`, file);
  return part("The SFrame that it has", facts([
    ["Version", details.word("sframe_versions", file)], ["Bytes", bytes(number("bytes"))], ["Functions", count(number("functions"))],
    ["Rows", count(number("rows"))], ["Code that it says as the call frame information does", bytes(number("equal_bytes"))],
    ["otherwise", bytes(number("different_bytes"))], ["only the call frame information", bytes(number("only_frames_bytes"))],
    ["only SFrame", bytes(number("only_sframe_bytes"))], ["Findings", count(number("findings"))],
    ["The worst", details.word("sframe_severity", file)], ["Error", details.word("sframe_error", file)]]));
}

// Functions with a reason, a group for each reason.
function reasonsOf(details, file) {
  const groups = [];
  for (let row = details.firstReason[file]; row < details.firstReason[file + 1]; row++) {
    // The first of each group has place 1, and is stored as 2.
    if (details.number("reason_place", row) === 1) groups.push([]);
    groups[groups.length - 1].push(row);
  }
  if (!groups.length) return null;
  const rank = (rows) => ["finding", "different", "uncovered"].indexOf(details.word("reason_about", rows[0])) * 10 - (details.number("reason_version", rows[0]) ?? 0);
  groups.sort((one, other) => rank(one) - rank(other));
  const shown = groups.map((rows) => {
    const first = rows[0], about = details.word("reason_about", first), version = details.number("reason_version", first);
    const total = details.number("reason_total", first), severity = details.word("reason_severity", first);
    const title = about === "uncovered" ? `Version ${version} ${ABOUT.uncovered}` : ABOUT[about] ?? about;
    const code = details.word("reason_code", first), [message] = details.word("reason_message", first).split(": ");
    const list = rows.map((row) => [details.names[row] || NONE, details.address(row), bytes(details.number("reason_size", row)),
      [details.word("reason_section", row), about === "uncovered" ? details.word("reason_message", row).split(": ").slice(1).join(": ") : details.word("reason_message", row)]
        .filter(Boolean).join(", ") || NONE]);
    const words = list.some((row) => row[3] !== NONE), columns = [["Function", false], ["At", true], ["Size", true], ["What", false]];
    const told = about === "uncovered" ? counted(total, "function") : counted(total, "place");
    // What older versions cannot say is told where it is wanted.
    return html("details", {class: "reason", open: about !== "uncovered" || version === 3},
      html("summary", {}, html("h4", {}, `${title}: ${about === "uncovered" ? message : code}`, severity && html("span", {class: "bad"}, ` ${severity}`))),
      html("p", {class: "quiet"}, `${told}${rows.length < total ? `, of which these are the largest ${count(rows.length)}` : ""}`),
      smallTable(words ? columns : columns.slice(0, 3), list.map((row) => (words ? row : row.slice(0, 3))), title));
  });
  return part("Functions with something to tell", ...shown);
}

// Damaged call frame information goes on behind the code that there is.
const shareOfText = (code, text) => (code > text ? "more than there is" : percent(code / text));
function fileOf(details, file) {
  const {files} = details, [name] = nameAndPlace(files.name(file)), functions = files.number("functions", file);
  const pointers = files.number("fp_functions", file), word = (name) => details.word(name, file), number = (name) => details.number(name, file);
  return [
    html("p", {class: "quiet"}, html("bdi", {}, [word("kind"), word("machine"), maker(word("producer"), word("producer_version"), word("language"))].filter(Boolean).join(" \u00b7 "))),
    part("Where it is", placesOf(files, file)),
    sizesOf(details, file), reasonsOf(details, file), sframeOf(details, file),
    part("What it is", facts([
      ["Outcome", word("outcome")], ["Error", word("error")], ["Kind", word("kind")], ["Architecture", word("machine")],
      ["Producer", [word("producer"), word("producer_version")].filter(Boolean).join(" ")], ["told by", word("producer_evidence")],
      ["All that left a mark", word("producers")], ["Language", word("language")], ["Linker", word("linker")],
      ["Build ID", files.buildId[file]], ["File", bytes(files.number("bytes", file))], ["Text", bytes(number("text_bytes"))],
      [".eh_frame", bytes(number("eh_frame"))], [".eh_frame_hdr", bytes(number("eh_frame_hdr"))], [".debug_frame", bytes(number("debug_frame"))],
      ["Derived from", word("source")], ["Functions", count(functions)], ["Rows", count(number("rows"))], ["Their code", bytes(number("code_bytes"))],
      ["Of the text", number("text_bytes") && known(number("code_bytes")) ? shareOfText(number("code_bytes"), number("text_bytes")) : ""],
      ["CFA from the frame pointer", functions ? `${count(pointers)}, ${percent(pointers / functions)}` : ""],
      ["Code where it is", known(number("fp_bytes")) && number("code_bytes") ? percent(number("fp_bytes") / number("code_bytes")) : ""],
      ["Save the caller's", functions ? `${count(number("fp_saved"))}, ${percent(number("fp_saved") / functions)}` : ""],
      ["Of code that is not there", count(number("dead") || null)], ["Of no code", count(number("empty") || null)],
      ["Not readable", count(number("unreadable") || null)], ["Described by others", count(number("shadowed") || null)],
    ])),
    partsOf(details, file), whatIfsOf(details, file), replacementOf(details, file),
    html("details", {}, html("summary", {}, "SQL"), html("pre", {tabindex: "0"}, html("code", {},
      ["files", "versions", "functions"].map((table) => `SELECT * FROM ${table} WHERE content = '${details.contents[file]}';\n`).join("")))),
    name,
  ];
}
