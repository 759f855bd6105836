// Puts the page together.
/** @import {SurveyMeta} from "./types.js" */
import {Columns, inflated} from "../pages/columns.js";
import {byId, count, html, known, percent, themeButton} from "../pages/common.js";
import {Controls} from "./survey_controls.js";
import {Details} from "./survey_details.js";
import {FileDialog} from "./survey_dialog.js";
import {chapterOf} from "./survey_figures.js";
import {FileList, Files} from "./survey_list.js";
import {drawInto, printCharts} from "./survey_panels.js";
import {prose} from "./survey_words.js";

/** @type {Record<string, (value: number | null) => string>} */
const CARD_UNITS = {count, share: percent};

/** @type {(meta: SurveyMeta) => void} */
function fillHead({finished, verdict, chart, cards}) {
  byId("theme").append(themeButton());
  if (!finished)
    byId("lead").append(html("p", {class: "bad"}, "This survey is not finished. These are its results so far."));
  byId("lead").append(html("p", {}, prose(verdict)));
  byId("cards").append(...cards.filter(({value}) => known(value)).map(cardOf));
  if (chart.rows.length) {
    const place = html("div", {class: "chart"});
    byId("head-chart").append(html("h2", {}, chart.title), place);
    drawInto(chart, place);
  }
}

/** @type {(card: SurveyMeta["cards"][number]) => HTMLElement} */
function cardOf({value, unit, words, figure}) {
  const inner = figure ? html("a", {href: `#figure-${figure}`}, words) : words;
  return html("div", {class: "panel card"}, html("dt", {}, inner), html("dd", {}, CARD_UNITS[unit](value)));
}

/** @type {(meta: SurveyMeta) => void} */
function fillBody({chapters, version}) {
  byId("chapters").append(...chapters.map(chapterOf));
  /** @type {(id: string, title: string) => HTMLElement} */
  const entry = (id, title) => html("li", {}, html("a", {href: `#${id}`}, title));
  byId("contents").append(
    ...chapters.map(({name, title}) => entry(`chapter-${name}`, title)),
    entry("files", "All files"),
  );
  byId("about").textContent =
    `Written by walkback ${version}. Each figure shows the SQL that produced it from the survey's Parquet tables.`;
}

// On paper charts have its width.
/** @type {(dialog: FileDialog) => void} */
function listenToPrinting(dialog) {
  /** @type {(on: boolean) => void} */
  const print = (on) => {
    printCharts(on);
    dialog.print(on);
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
}

(async () => {
  /** @type {SurveyMeta} */
  const meta = JSON.parse(byId("meta").textContent);
  byId("meta").remove();
  fillHead(meta);
  fillBody(meta);
  byId("nav").hidden = byId("files").hidden = false;
  const files = new Files(meta, new Columns(meta.list, await inflated("list-data")));
  const list = new FileList(files, byId("list"));
  new Controls(files, list);
  const dialog = new FileDialog(list, async () => {
    return new Details(files, new Columns(meta.details, await inflated("details-data")));
  });
  listenToPrinting(dialog);
  await dialog.follow();
  document.documentElement.dataset.ready = "yes";
})();
