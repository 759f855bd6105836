// The search and the choices above the list of all files.
/** @import {FileList, Files} from "./survey_list.js" */
import {byId, count, counted, html} from "../pages/common.js";
import {onSlash, onTyped} from "../pages/events.js";

const TYPING_PAUSE = 90;
const LEAST_WORDS = 3; // The first word of a column stands for none.
const CHOICES = [
  ["machine", "Architecture"],
  ["producer", "Producer"],
  ["language", "Language"],
  ["kind", "Kind"],
  ["outcome", "Outcome"],
];

export class Controls {
  /** @param {Files} files @param {FileList} list */
  constructor(files, list) {
    this.files = files;
    this.list = list;
    this.search = /** @type {HTMLInputElement} */ (byId("search"));
    this.clear = /** @type {HTMLButtonElement} */ (byId("clear"));
    this.choices = CHOICES.filter(([name]) => files.words[name].length >= LEAST_WORDS).map(([name, title]) =>
      this.choice(name, title),
    );
    byId("filters").replaceChildren(...this.choices);
    this.listen();
    this.apply();
  }

  // The words of a column, with how many files have each.
  /** @type {(name: string, title: string) => HTMLSelectElement} */
  choice(name, title) {
    const {files} = this,
      counts = new Uint32Array(files.words[name].length);
    for (const number of files.numbers(name)) counts[number]++;
    const options = files.words[name].map((word, number) =>
      counts[number] ? html("option", {value: number}, `${word || "unknown"} (${count(counts[number])})`) : null,
    );
    return html("select", {"aria-label": title, name}, html("option", {value: ""}, title), options);
  }

  // Show the files that have all words of the search, and what is chosen.
  apply() {
    const {files, list} = this;
    const wanted = this.search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = this.choices
      .filter(({value}) => value !== "")
      .map(({name, value}) => ({numbers: files.numbers(name), value: Number(value)}));
    const all = !wanted.length && !chosen.length;
    this.clear.disabled = all;
    const texts = wanted.length ? files.texts() : [];
    /** @type {(file: number) => boolean} */
    const isAccepted = (file) =>
      chosen.every(({numbers, value}) => numbers[file] === value) && wanted.every((word) => texts[file].includes(word));
    list.show(all ? null : Uint8Array.from({length: files.count}, (_, file) => Number(isAccepted(file))));
    const total = counted(files.count, "file");
    byId("matched").textContent = all ? total : `${count(list.shown.length)} of ${total}`;
  }

  listen() {
    const apply = () => this.apply(),
      dialog = /** @type {HTMLDialogElement} */ (byId("file"));
    onTyped(this.search, TYPING_PAUSE, apply);
    this.search.addEventListener("keydown", (event) => this.key(event));
    this.choices.forEach((choice) => choice.addEventListener("change", apply));
    this.clear.addEventListener("click", () => this.reset());
    byId("controls").addEventListener("submit", (event) => {
      event.preventDefault();
      apply();
    });
    onSlash(
      ({target}) => !dialog.open && !(/** @type {Element} */ (target).matches("input, select, textarea")),
      () => this.search.focus(),
    );
  }
  /** @type {(event: KeyboardEvent) => void} */
  key(event) {
    if (event.key === "Escape") {
      this.search.value = "";
      this.apply();
    }
    if (event.key === "ArrowDown" && this.list.shown.length) {
      event.preventDefault();
      this.apply();
      this.list.go(0);
    }
  }
  reset() {
    this.search.value = "";
    for (const choice of this.choices) choice.value = "";
    this.apply();
    this.search.focus();
  }
}
