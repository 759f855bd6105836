// The page of a store that is served: which samples are looked at, and what the server says of them.
/** @import {Side, StacksAnswer, StoreAnswer, Times, View} from "./types.js" */
import {showGraph} from "../export/flamegraph.js";
import {NO_DATA} from "../export/flamegraph_tree.js";
import {byId, bytes, counted, html} from "../pages/common.js";
import {goTo, takeToken, viewOfAddress, wordsOfStacks, wordsOfTimes} from "./serving_address.js";
import {filterFunctions, showFunctions, showNoFunctions} from "./serving_functions.js";
import {listenToTimes, showTimes} from "./serving_timeline.js";

const MOST_VALUES = 500; // that a list offers
/** @type {(id: string) => HTMLInputElement} */
const input = (id) => /** @type {HTMLInputElement} */ (byId(id));
/** @type {(id: string) => HTMLButtonElement} */
const button = (id) => /** @type {HTMLButtonElement} */ (byId(id));

const token = takeToken();
/** @type {View} */
let view = viewOfAddress();
// Whether times and filters are those of the side before.
let isBefore = false;
let query = location.search;
let loading = new AbortController();

/** @type {() => Side} */
const side = () => (isBefore && view.before ? view.before : view.after);

// What the server answers; what it refuses is an error with its line.
/** @type {(kind: string, words: URLSearchParams, signal: AbortSignal) => Promise<any>} */
async function ask(kind, words, signal) {
  /** @type {Record<string, string>} */
  const headers = token ? {Authorization: `Bearer ${token}`} : {};
  const answer = await fetch(`/${kind}${words.size ? `?${words}` : ""}`, {headers, signal, cache: "no-store"});
  if (!answer.ok) throw new Error((await answer.text()).trim() || answer.statusText);
  return answer.json();
}

/** @type {(words: string) => void} */
function showProblem(words) {
  byId("problem").textContent = words;
  byId("problem").hidden = !words;
}

/** @type {(id: string, isOn: boolean) => void} */
const press = (id, isOn) => byId(id).setAttribute("aria-pressed", String(isOn));

function showChoice() {
  const {since, until, filters} = side();
  input("since").value = since;
  input("until").value = until;
  input("filter").value = "";
  button("near").disabled = !since && !until;
  button("far").disabled = !view.from && !view.to;
  byId("sides").hidden = !view.before;
  press("compare", Boolean(view.before));
  press("before", isBefore);
  press("after", !isBefore);
  press("graphs", !view.functions);
  press("tables", view.functions);
  byId("scroll").hidden = byId("foot").hidden = view.functions;
  byId("functions").hidden = !view.functions;
  byId("filters").replaceChildren(
    ...filters.map(([name, value], place) => {
      const words = name === "label" ? value : `${name}=${value}`;
      const remove = () => change({filters: filters.filter((_, other) => other !== place)});
      const label = `Take the filter ${words} away`;
      return html("li", {}, html("button", {type: "button", onclick: remove, "aria-label": label}, `${words} \u00d7`));
    }),
  );
}

/** @type {(found: StoreAnswer) => void} */
function showStore({store, samples, stacks, bytes: size, hosts, processes, labels}) {
  byId("title").textContent = store;
  document.title = store;
  byId("about").textContent = `${counted(samples, "sample")}, ${counted(stacks, "stack")}, ${bytes(size)}`;
  /** @type {(name: string, values: string[]) => string[]} */
  const pairs = (name, values) => values.map((value) => `${name}=${value}`);
  const all = [...pairs("host", hosts), ...pairs("process", processes)];
  for (const [name, values] of Object.entries(labels))
    all.push(...pairs(name === "host" || name === "process" ? `label:${name}` : name, values));
  byId("values").replaceChildren(...all.slice(0, MOST_VALUES).map((value) => html("option", {value})));
}

/** @type {(found: StacksAnswer) => void} */
function showStacks(found) {
  byId("notes").replaceChildren(...(found.notes ?? []).map((note) => html("li", {}, note)));
  if (found.missing) {
    byId("about").textContent = found.missing;
    showGraph(NO_DATA);
    showNoFunctions();
    return;
  }
  byId("about").textContent = `${found.title}: ${found.about}`;
  showGraph(found.graph);
  showFunctions(found);
}

// Ask for everything that the address names.
async function load() {
  loading.abort();
  loading = new AbortController();
  const {signal} = loading;
  document.body.ariaBusy = "true";
  query = location.search;
  view = viewOfAddress();
  isBefore &&= view.before !== null;
  showChoice();
  try {
    showStore(await ask("store", new URLSearchParams(), signal));
    /** @type {Times} */
    const times = await ask("timeline", wordsOfTimes(view, side()), signal);
    showTimes(times, view.after, view.before);
    showStacks(await ask("stacks", wordsOfStacks(view), signal));
    showProblem("");
  } catch (error) {
    if (signal.aborted) return;
    const isGone = error instanceof TypeError;
    showProblem(isGone ? "The server does not answer: does it still run?" : /** @type {Error} */ (error).message);
  }
  document.body.ariaBusy = "false";
}

/** @type {(next: View) => void} */
function go(next) {
  goTo(next);
  load();
}

// Change times or filters of the side that is chosen.
/** @type {(changed: Partial<Side>) => void} */
function change(changed) {
  const next = {...side(), ...changed};
  go(isBefore ? {...view, before: next} : {...view, after: next});
}

// What somebody typed as a filter: `NAME=VALUE`, where `label:host` is the label of that name.
/** @type {(text: string) => Side["filters"][0] | null} */
function filterOf(text) {
  const [name] = text.split("=", 1),
    value = text.slice(name.length + 1);
  if (!name || name === text) return null;
  if (name === "host" || name === "process") return [name, value];
  return ["label", text.replace(/^label:/, "")];
}

function takeTyped() {
  const {filters} = side(),
    text = input("filter").value.trim(),
    filter = filterOf(text);
  if (text && !filter) {
    showProblem("A filter is NAME=VALUE, such as process=hello or version=1.2");
    return;
  }
  const isNew = filter && !filters.some(([name, value]) => name === filter[0] && value === filter[1]);
  const changed = {
    since: input("since").value.trim(),
    until: input("until").value.trim(),
    filters: isNew ? [...filters, filter] : filters,
  };
  if (isNew || changed.since !== side().since || changed.until !== side().until) change(changed);
}

/** @type {(isOfBefore: boolean) => void} */
function turnTo(isOfBefore) {
  isBefore = isOfBefore;
  load();
}

function listenToChoice() {
  byId("range").addEventListener("submit", (event) => {
    event.preventDefault();
    takeTyped();
  });
  for (const id of ["since", "until", "filter"]) byId(id).addEventListener("change", takeTyped);
  byId("near").addEventListener("click", () => go({...view, from: side().since, to: side().until}));
  byId("far").addEventListener("click", () => go({...view, from: "", to: ""}));
  byId("compare").addEventListener("click", () => {
    // What was looked at is what came after.
    isBefore = !view.before;
    go({...view, before: view.before ? null : {...view.after}});
  });
  byId("before").addEventListener("click", () => turnTo(true));
  byId("after").addEventListener("click", () => turnTo(false));
  byId("graphs").addEventListener("click", () => go({...view, functions: false}));
  byId("tables").addEventListener("click", () => go({...view, functions: true}));
}

function listenToAddress() {
  addEventListener("popstate", () => {
    if (location.search !== query) load();
  });
  for (const [id, kind] of [
    ["search", "input"],
    ["reset", "click"],
  ])
    byId(id).addEventListener(kind, filterFunctions);
  addEventListener("hashchange", filterFunctions);
}

listenToTimes((since, until) => change({since, until}));
listenToChoice();
listenToAddress();
load();
