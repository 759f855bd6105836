// What pages do when somebody types, presses keys or scrolls.

/** @type {(event: KeyboardEvent) => boolean} */
export const isModified = (event) => event.ctrlKey || event.metaKey || event.altKey;

// Call what searches when nobody has typed for some milliseconds.
/** @type {(input: HTMLInputElement, pause: number, search: () => void) => void} */
export function onTyped(input, pause, search) {
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, pause);
  });
}

// The slash leads to the search, unless it means itself.
/** @type {(isFree: (event: KeyboardEvent) => boolean, go: () => void) => void} */
export function onSlash(isFree, go) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || !isFree(event)) return;
    event.preventDefault();
    go();
  });
}

// Draws before the next frame, once for all that ask until then.
/** @type {(draw: () => void) => () => void} */
export function oncePerFrame(draw) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  };
}
