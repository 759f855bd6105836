// Shows one step of a function at a time: by buttons, by the arrow keys, and by the links of the table.

/** @type {(group: HTMLElement) => void} */
function follow(group) {
  const steps = [...group.querySelectorAll("section")],
    rows = [...group.querySelectorAll("tbody tr")],
    buttons = document.createElement("div"),
    back = document.createElement("button"),
    next = document.createElement("button"),
    status = document.createElement("span");
  let at = 0;

  /** @type {(to: number) => void} */
  function show(to) {
    at = Math.min(Math.max(to, 0), steps.length - 1);
    steps.forEach((step, number) => (step.hidden = number !== at));
    rows.forEach((row, number) => row.toggleAttribute("aria-current", number === at));
    rows[at].setAttribute("aria-current", "step");
    back.ariaDisabled = String(at === 0);
    next.ariaDisabled = String(at === steps.length - 1);
    status.textContent = `Step ${at + 1} of ${steps.length}; the arrow keys work, too`;
  }

  back.textContent = "\u2190 Back";
  next.textContent = "Next \u2192";
  status.role = "status";
  back.addEventListener("click", () => show(at - 1));
  next.addEventListener("click", () => show(at + 1));
  buttons.className = "stack-buttons";
  buttons.append(back, next, status);
  steps[0].before(buttons);
  rows.forEach((row, number) =>
    row.querySelector("a")?.addEventListener("click", (event) => {
      event.preventDefault();
      show(number);
    }),
  );
  group.addEventListener("keydown", (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    const scrolls = event.target instanceof Element && event.target.matches(".stack-table");
    if (by === undefined || scrolls || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(at + by);
  });
  show(0);
}

document.querySelectorAll(".stack-steps").forEach((group) => group instanceof HTMLElement && follow(group));
