// Puts the page together.
/** @import {SurveyMeta} from "./types.js" */
import {Columns, inflated} from "../pages/columns.js";
import {byId, count, html, known, percent, ratio, themeButton} from "../pages/common.js";
import {chapterOf, printCharts} from "./survey_figures.js";
import {Details} from "./survey_details.js";
import {fileOf} from "./survey_file.js";
import {FileList, Files, controls} from "./survey_list.js";
import {prose} from "./survey_words.js";

(async () => {
  /** @type {SurveyMeta} */
  const meta = JSON.parse(byId("meta").textContent);
  byId("meta").remove();
  byId("theme").append(themeButton());
  if (!meta.finished)
    byId("lead").append(html("p", {class: "bad"}, "This survey is not finished: these are the figures so far."));
  byId("lead").append(...meta.lead.map((words) => html("p", {}, prose(words))));
  /** @type {Record<string, (value: number | null) => string>} */
  const units = {count, share: percent, ratio: (value) => `${ratio(value)} \u00d7`};
  byId("cards").append(
    ...meta.cards
      .filter((card) => known(card.value))
      .map((card) =>
        html(
          "div",
          {class: "panel card"},
          html("dt", {}, html("a", {href: `#figure-${card.figure}`}, card.words)),
          html("dd", {}, units[card.unit](card.value)),
        ),
      ),
  );
  byId("chapters").append(...meta.chapters.map(chapterOf));
  byId("contents").append(
    ...meta.chapters.map((chapter) => html("li", {}, html("a", {href: `#chapter-${chapter.name}`}, chapter.title))),
    html("li", {}, html("a", {href: "#files"}, "All files")),
  );
  byId("about").textContent =
    `Made by walkback ${meta.version} with walkback report. ` +
    "The survey's tables are Parquet: every figure shows the SQL that made it.";

  byId("nav").hidden = byId("files").hidden = false;
  const files = new Files(meta, new Columns(meta.list, await inflated("list-data")));
  const list = new FileList(files, byId("list"));
  controls(files, list);

  const dialog = /** @type {HTMLDialogElement} */ (byId("file"));
  /** @type {Promise<Details> | null} */
  let details = null;
  /** @type {Element | null} */
  let from = null;
  let shown = "";
  async function route() {
    const {hash} = location,
      found = /^#file=(\d+)$/.exec(hash),
      file = found ? Number(found[1]) : -1;
    if (file < 0 || file >= files.count) {
      if (dialog.open) dialog.close();
      return;
    }
    details ??= inflated("details-data").then((buffer) => new Details(files, new Columns(meta.details, buffer)));
    const its = await details;
    // Another one may be wanted by now.
    if (location.hash !== hash) return;
    const {name, parts} = fileOf(its, file);
    shown = hash;
    const close = html("button", {type: "button", class: "small screen", onclick: () => dialog.close()}, "Close");
    dialog.replaceChildren(
      html("header", {}, html("h2", {id: "file-title", tabindex: "-1"}, html("bdi", {}, name)), close),
      html("div", {class: "parts"}, parts),
    );
    if (!dialog.open) {
      from = document.activeElement;
      dialog.showModal();
    }
    dialog.scrollTop = 0;
    byId("file-title").focus();
  }
  dialog.addEventListener("close", () => {
    if (location.hash === shown) history.replaceState(null, "", location.pathname + location.search);
    dialog.replaceChildren();
    if (from instanceof HTMLElement && from.isConnected) from.focus({preventScroll: true});
    else list.focus();
  });
  // Beside what is shown.
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  // On paper charts have its width. What stands in a dialog would end with the first sheet, so a copy is printed.
  /** @type {(on: boolean) => void} */
  const print = (on) => {
    byId("printed")?.remove();
    printCharts(on);
    if (!on || !dialog.open) return;
    const copy = html("div", {id: "printed"}, [.../** @type {Element} */ (dialog.cloneNode(true)).children]);
    /** @type {NodeListOf<HTMLDetailsElement>} */
    const reasons = copy.querySelectorAll(".reason");
    for (const reason of reasons) reason.open = true;
    document.body.append(copy);
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
  addEventListener("hashchange", route);
  await route();
  document.documentElement.dataset.ready = "yes";
})();
