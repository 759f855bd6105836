// What somebody looks at, as the query of the page's address has it; the server takes most of it as it is. What is
// behind the # is the flame graph's, and at first the token.
/** @import {Side, View} from "./types.js" */

const KEPT_AS = "walkback-token";
/** @type {Side["filters"][0][0][]} */
const FILTERS = ["host", "process", "label"];

// The token of the address that was printed. It is kept for this address alone, so that other tabs have it.
/** @type {() => string} */
export function takeToken() {
  const words = new URLSearchParams(location.hash.slice(1)),
    given = words.get("token");
  try {
    if (given) localStorage.setItem(KEPT_AS, given);
    if (given) showAddress(location.search, withoutWords("token"), false);
    return given ?? localStorage.getItem(KEPT_AS) ?? "";
  } catch {
    // There is nowhere to keep it, so the address does.
    return given ?? "";
  }
}

// The part behind the # without some words.
/** @type {(...names: string[]) => string} */
function withoutWords(...names) {
  const words = new URLSearchParams(location.hash.slice(1));
  for (const name of names) words.delete(name);
  return words.size ? `#${words}` : "";
}

/** @type {(query: string, hash: string, isStep: boolean) => void} */
function showAddress(query, hash, isStep) {
  const address = `${location.pathname}${query}${hash}`;
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}

/** @type {(words: URLSearchParams, prefix: string) => Side} */
const sideOf = (words, prefix) => ({
  since: words.get(`${prefix}since`) ?? "",
  until: words.get(`${prefix}until`) ?? "",
  filters: FILTERS.flatMap((name) =>
    words.getAll(prefix + name).map((value) => /** @type {Side["filters"][0]} */ ([name, value])),
  ),
});

// What the address names. It may have been written by hand.
/** @type {() => View} */
export function viewOfAddress() {
  const words = new URLSearchParams(location.search);
  return {
    after: sideOf(words, ""),
    before: words.has("compare") ? sideOf(words, "before-") : null,
    from: words.get("from") ?? "",
    to: words.get("to") ?? "",
    functions: words.get("show") === "functions",
  };
}

/** @type {(words: URLSearchParams, prefix: string, side: Side) => void} */
function addSide(words, prefix, {since, until, filters}) {
  if (since) words.append(`${prefix}since`, since);
  if (until) words.append(`${prefix}until`, until);
  for (const [name, value] of filters) words.append(prefix + name, value);
}

// What the server is asked for stacks.
/** @type {(view: View) => URLSearchParams} */
export function wordsOfStacks({after, before}) {
  const words = new URLSearchParams();
  addSide(words, "", after);
  if (before) {
    words.append("compare", "1");
    addSide(words, "before-", before);
  }
  return words;
}

// What the server is asked for the bars: the samples of a side at the times that are shown.
/** @type {(view: View, side: Side) => URLSearchParams} */
export function wordsOfTimes({from, to}, {filters}) {
  const words = new URLSearchParams();
  addSide(words, "", {since: from, until: to, filters});
  return words;
}

// Name a view in the address, as a step that the back button takes back. The zoomed frame was another graph's.
/** @type {(view: View) => void} */
export function goTo(view) {
  const words = wordsOfStacks(view);
  if (view.from) words.append("from", view.from);
  if (view.to) words.append("to", view.to);
  if (view.functions) words.append("show", "functions");
  const query = words.size ? `?${words}` : "";
  if (query !== location.search) showAddress(query, withoutWords("frame"), true);
}
