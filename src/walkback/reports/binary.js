// Puts the page together: headlines, the code by address, the list of functions and the one that is chosen.
/** @import {Choice} from "./binary_choices.js" */
/** @import {ListColumn} from "./binary_list.js" */
/** @import {Child} from "../pages/types.js" */
/** @import {Version} from "./types.js" */
import {inflated} from "../pages/columns.js";
import {NONE, byId, bytes, count, counted, html} from "../pages/common.js";
import {isModified, onSlash, onTyped} from "../pages/events.js";
import {Choices} from "./binary_choices.js";
import {Binary, SIGNAL} from "./binary_data.js";
import {fillFoot} from "./binary_foot.js";
import {FunctionPanel} from "./binary_function.js";
import {fillHead} from "./binary_head.js";
import {CodeLine} from "./binary_line.js";
import {LongTable} from "./binary_list.js";
import {PROOF} from "./binary_proof.js";
import {isNamed, namedFirst, shownFirst} from "./binary_order.js";
import {hasSeveral, sourceLegend, sourceMark} from "./binary_sources.js";

const PRINTED_ROWS = 25;
const TYPING_PAUSE = 80;
const COST_COLUMN = 4; // Of the list, which has it if there is a version.
const TYPED_INTO = "input:not([type=range]):not([type=radio]), select";
const LEAD = "All code sections in sequence, to scale.";

class BinaryPage {
  /** @param {Binary} binary */
  constructor(binary) {
    this.binary = binary;
    const possible = binary.versions.filter(({impossible}) => !impossible);
    this.version = possible.at(-1)?.version ?? null;
    this.line = new CodeLine(binary, (index, offset) => this.choose(index, offset));
    this.panel = new FunctionPanel(binary, byId("function"));
    // The functions in the order of the list, and those of them that are in it.
    this.order = namedFirst(binary);
    this.listed = this.order;
    this.input = html("input", {
      type: "search",
      id: "search",
      placeholder: "Name or address ( / )",
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": "Search functions by name or address",
    });
    this.filter = html("select", {id: "filter", "aria-label": "Which functions", onchange: () => this.search()});
    this.status = html("p", {class: "quiet", role: "status"});
    this.list = new LongTable({
      label: "Functions",
      id: "functions",
      columns: this.columns(),
      cells: (row) => this.cells(this.listed[row]),
      chosen: (row, byHand) => {
        this.choose(this.listed[row], null, !byHand);
        if (byHand) this.panel.reveal();
      },
      sorted: (column, down) => this.resort(column, down),
    });
    /** @type {Choice[]} */
    this.tests = [];
    this.choices = new Choices(binary);
    // Names in small letters, made when they are asked for.
    /** @type {string[] | null} */
    this.lower = null;
    // What printing changes.
    this.before = {theme: "", words: ""};
    this.panel.moved = (place) => history.replaceState(null, "", `#${encodeURIComponent(place)}`);
    byId("line").replaceChildren(this.line.element);
    fillHead(binary);
    this.versionChoice(possible);
    this.functionList();
    fillFoot(binary);
    this.setVersion(this.version);
    addEventListener("hashchange", () => this.follow());
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    if (!this.follow()) this.choose(shownFirst(binary));
  }

  // Versions

  /** @type {(possible: Version[]) => void} */
  versionChoice(possible) {
    const choice = possible.map(({version}) => {
      const checked = version === this.version,
        onchange = () => this.setVersion(version);
      return html(
        "label",
        {class: "choice"},
        html("input", {type: "radio", name: "version", value: version, checked, onchange}),
        `V${version}`,
      );
    });
    byId("versions").append(...choice);
    byId("versions").hidden = possible.length < 2;
  }

  /** @type {(version: number | null) => void} */
  setVersion(version) {
    this.version = this.line.version = version;
    const possible = version && this.binary.versionOf(version);
    byId("line-lead").textContent = possible
      ? `${LEAD} ${this.coverWords(possible)}`
      : `${LEAD} Its rows come from ${this.binary.tables}.`;
    if (version) this.list.rename(COST_COLUMN, `V${version}`);
    this.filters();
    this.search();
    this.line.redraw();
    this.line.describe(this.line.current);
  }

  /** @type {(version: Version) => string} */
  coverWords({version, covered, lostBytes}) {
    const missing = this.binary.counts.functions - covered;
    if (!missing) return `SFrame V${version} covers every function.`;
    return `SFrame V${version} leaves out ${counted(missing, "function")} with ${bytes(lostBytes)} of code.`;
  }

  // The list

  functionList() {
    this.list.element.style.setProperty("--address", `${this.binary.addressLetters()}ch`);
    /** @type {(event: Event) => void} */
    const onsubmit = (event) => {
      event.preventDefault();
      this.toList(0);
    };
    const form = html("form", {role: "search", class: "screen", onsubmit}, this.input, this.filter);
    byId("list").replaceChildren(form, this.status, sourceLegend(this.binary), this.list.element);
    this.listenToKeys();
  }

  /** @type {() => ListColumn[]} */
  columns() {
    const {size, rows} = this.binary;
    /** @type {ListColumn[]} */
    const columns = [
      {
        title: "Name",
        className: "name mono",
        sort: (one, other) => this.byName(one, other),
        isLast: (index) => !isNamed(this.binary, index),
      },
      {title: "Address", className: "address number mono", sort: (one, other) => one - other},
      {title: "Code", className: "code number", sort: (one, other) => size[one] - size[other], down: true},
      {title: "Rows", className: "count number", sort: (one, other) => rows.count(one) - rows.count(other), down: true},
    ];
    // What a function takes in the chosen version.
    /** @type {(one: number, other: number) => number} */
    const byCost = (one, other) => this.costOf(one) - this.costOf(other);
    if (this.version) columns.push({title: "SFrame", className: "cost number", sort: byCost, down: true});
    return columns;
  }

  listenToKeys() {
    onTyped(this.input, TYPING_PAUSE, () => this.search());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown") {
        event.preventDefault();
        this.toList(Math.max(0, this.list.current));
      } else if (event.key === "Escape" && this.input.value) {
        event.preventDefault();
        this.input.value = "";
        this.search();
      }
    });
    onSlash(
      (event) => !isModified(event) && !(/** @type {Element} */ (event.target).closest(TYPED_INTO)),
      () => {
        this.input.focus();
        this.input.select();
      },
    );
  }

  /** @type {(row: number) => void} */
  toList(row) {
    if (!this.listed.length) return;
    this.list.element.focus();
    if (row !== this.list.current) this.list.choose(row, true);
  }

  /** @type {(index: number) => number} */
  costOf(index) {
    const version = this.version ?? 0;
    return this.binary.reasonOf(index, version) ? -1 : (this.binary.cost.get(version)?.[index] ?? 0);
  }
  /** @type {(one: number, other: number) => number} */
  byName(one, other) {
    const [a, b] = [this.lowered(one), this.lowered(other)];
    return a < b ? -1 : a > b ? 1 : one - other;
  }
  /** @type {(index: number) => string} */
  lowered(index) {
    this.lower ??= this.binary.symbols.map((_, place) => this.binary.name(place).toLowerCase());
    return this.lower[index];
  }

  /** @type {(index: number) => Child[]} */
  cells(index) {
    const binary = this.binary,
      hasName = isNamed(binary, index),
      name = hasName ? binary.name(index) : "no name";
    const nameCell = html("span", {title: name, class: hasName ? "" : "quiet"}, name);
    /** @type {Child[]} */
    const cells = [
      html("span", {class: "named"}, nameCell, this.marks(index)),
      binary.place(binary.start[index], binary.text[index]),
      bytes(binary.size[index]),
      count(binary.rows.count(index)),
    ];
    if (this.version) {
      const isLost = binary.reasonOf(index, this.version) !== null;
      cells.push(isLost ? NONE : bytes(binary.cost.get(this.version)?.[index]));
    }
    return cells;
  }

  // What stands beside a function's name.
  /** @type {(index: number) => HTMLElement[]} */
  marks(index) {
    const {binary, version} = this,
      lost = version && binary.reasonOf(index, version);
    /** @type {HTMLElement[]} */
    const marks = [];
    /** @type {(words: string, kind: string, title?: string) => void} */
    const mark = (words, kind, title) => marks.push(html("span", {class: kind, title}, words));
    if (hasSeveral(binary)) marks.push(sourceMark(binary, index));
    if (lost) mark(`not in V${version}`, "bad", lost[1]);
    if (binary.sframe && binary.stretches.verdicts[index])
      mark("differs", "bad", `${binary.sframe.name} describes it differently`);
    if (binary.proof?.has(index, PROOF.WRONG)) mark("wrong", "bad", `Proof: ${binary.proof.summary(index)}`);
    if (binary.flags[index] & SIGNAL) mark("signal", "quiet");
    if (binary.block[index]) mark("repeats", "quiet");
    return marks;
  }

  // Offer what any function is.
  filters() {
    const chosen = this.filter.value || "all";
    this.tests = this.choices.of(this.version);
    const options = this.tests.flatMap(([name, words, test]) => {
      let number = 0;
      for (let index = 0; index < this.binary.length; index++) if (test(index)) number++;
      return number || name === "all" ? [html("option", {value: name}, `${words} (${count(number)})`)] : [];
    });
    this.filter.replaceChildren(...options);
    this.filter.value = options.some(({value}) => value === chosen) ? chosen : "all";
  }

  search() {
    const {binary} = this,
      wanted = this.input.value.trim().toLowerCase();
    const holders = /^0x[0-9a-f]{1,16}$/.test(wanted) ? binary.at(BigInt(wanted)) : [];
    if (holders.length) {
      this.listed = Uint32Array.from(holders, ([index]) => index);
      this.list.show(this.listed.length, 0);
      this.choose(...holders[0], true);
    } else {
      this.listed = this.matching(wanted.split(/\s+/).filter(Boolean));
      this.list.show(this.listed.length, this.listed.indexOf(this.line.current));
    }
    this.list.empty.textContent = binary.length ? "No function matches." : "There are no functions.";
    this.status.textContent = this.statusWords();
  }

  // The functions that pass the filter and have all words in their names.
  /** @type {(words: string[]) => Uint32Array<ArrayBuffer>} */
  matching(words) {
    const {names, symbols} = this.binary;
    const [, , test] = this.tests.find(([name]) => name === this.filter.value) ?? this.tests[0];
    /** @type {(index: number, word: string) => boolean} */
    const symbolHas = (index, word) => names[index] !== "" && symbols[index].toLowerCase().includes(word);
    /** @type {(index: number) => boolean} */
    const has = (index) => words.every((word) => this.lowered(index).includes(word) || symbolHas(index, word));
    return this.order.filter((index) => test(index) && (!words.length || has(index)));
  }

  // How many functions are listed.
  statusWords() {
    const {counts, length} = this.binary,
      isWhole = length === counts.functions;
    const functions = counted(counts.functions, "function"),
      pieces = counted(length, "piece");
    if (this.listed.length < length) return `${count(this.listed.length)} of ${isWhole ? functions : pieces}`;
    return isWhole ? functions : `${pieces} of ${functions}`;
  }

  /** @type {(column: ListColumn, down: boolean) => void} */
  resort({sort = () => 0, isLast = () => false}, down) {
    const sign = down ? -1 : 1;
    this.order = Uint32Array.from(this.order).sort(
      (one, other) => Number(isLast(one)) - Number(isLast(other)) || sign * sort(one, other) || one - other,
    );
    this.search();
  }

  // The chosen function

  /** @type {(index: number, offset?: number | null, quietly?: boolean) => void} */
  choose(index, offset = null, quietly = false) {
    if (index < 0) {
      const words = html("p", {class: "quiet"}, "This file has no functions.");
      byId("function").replaceChildren(html("h3", {id: "function-name"}, "No function"), words);
      return;
    }
    this.line.select(index);
    this.panel.show(index, offset);
    if (!quietly || this.list.current < 0) this.list.mark(this.listed.indexOf(index));
  }

  // Choose what an address in the link has that led here, if there is one.
  follow() {
    let place;
    try {
      place = decodeURIComponent(location.hash.slice(1));
    } catch {
      return false;
    }
    const match = /^(?:(.*)\+)?(0x[0-9a-f]{1,16})$/i.exec(place);
    if (!match) return false;
    const [, section, address] = match,
      holders = this.binary.at(BigInt(address));
    const holder = holders.find(([index]) => !section || this.binary.sectionOf(index) === section);
    if (!holder) return false;
    const [index, offset] = holder,
      isShown = this.line.current === index && this.panel.offset === offset;
    if (!isShown) this.choose(index, offset);
    return true;
  }

  // On paper tables have their first rows, and say how many more there are.
  /** @type {(on: boolean) => void} */
  print(on) {
    const root = document.documentElement,
      most = on ? PRINTED_ROWS : 0;
    if (on) {
      this.before = {theme: root.dataset.theme ?? "", words: this.status.textContent};
      if (most < this.listed.length) this.status.textContent = `The first ${count(most)} of ${this.status.textContent}`;
    } else this.status.textContent = this.before.words;
    root.dataset.theme = on ? "light" : this.before.theme;
    this.list.print(most);
    this.panel.print(most);
    this.line.print(on);
  }
}

(async () => {
  const waiting = byId("waiting");
  waiting.hidden = false;
  const meta = JSON.parse(byId("meta").textContent);
  try {
    const buffer = await inflated("data");
    byId("main").hidden = false;
    new BinaryPage(new Binary(meta, buffer));
    document.documentElement.dataset.ready = "true";
    waiting.remove();
  } catch (error) {
    waiting.textContent = "The tables in this page cannot be read by this browser.";
    throw error;
  }
})();
