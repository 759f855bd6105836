// What somebody looks at, as the address of the page has it behind the #: so it can be shared, kept and gone back to.

/**
 * @typedef {object} View
 * @property {number} frame The zoomed node; the root is 0.
 * @property {string} find What is searched for.
 * @property {boolean} inverted
 * @property {boolean} before Of a difference: whether the widths are those of before.
 * @property {boolean} files Whether functions are coloured by file.
 */

// What the address names. It may have been written by hand.
/** @type {() => View} */
export function viewOfAddress() {
  const words = new URLSearchParams(location.hash.slice(1)),
    frame = Number(words.get("frame"));
  return {
    frame: Number.isSafeInteger(frame) && frame > 0 ? frame : 0,
    find: words.get("find") ?? "",
    inverted: words.has("inverted"),
    before: words.has("before"),
    files: words.has("files"),
  };
}

/** @type {(view: View) => string} */
function hashOf({frame, find, inverted, before, files}) {
  const words = new URLSearchParams();
  if (frame) words.set("frame", String(frame));
  if (find) words.set("find", find);
  for (const [name, isOn] of Object.entries({inverted, before, files})) if (isOn) words.set(name, "1");
  return words.size ? `#${words}` : "";
}

// Name a view in the address; a step is one that the back button takes back.
/** @type {(view: View, isStep: boolean) => void} */
export function keepInAddress(view, isStep) {
  const hash = hashOf(view);
  if (hash === location.hash) return;
  const address = hash || location.pathname + location.search;
  if (isStep) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
