// Where .sframe and call frame information do not say the same of a function.
/** @import {Binary} from "./binary_data.js" */
/** @import {Head} from "../pages/common.js" */
/** @import {SFrame} from "./types.js" */
import {counted, hexadecimal, html, scrollBox, tableHead} from "../pages/common.js";
import {VERDICT} from "./binary_data.js";
import {framesText, sframeText} from "./binary_rules.js";

const MOST_DIFFERENCES = 20;

/** @type {(binary: Binary, sframe: SFrame, index: number) => HTMLElement[]} */
export function differencesOf(binary, sframe, index) {
  const stretches = binary.stretches.byFunction.get(index) ?? [];
  const heading = html("h4", {}, `${sframe.name} and ${binary.tables}`);
  if (!stretches.length) return [heading, html("p", {class: "good"}, "They agree at every address of this function.")];
  const more = stretches.length - MOST_DIFFERENCES;
  /** @type {Head[]} */
  const heads = [
    ["Code", false],
    ["", false],
    [binary.tables, false],
    [sframe.name, false],
  ];
  const rows = stretches.slice(0, MOST_DIFFERENCES).map((stretch) => differenceRow(binary, sframe, index, stretch));
  const table = html("table", {"aria-label": "Differences"}, tableHead(heads), html("tbody", {}, rows));
  return [
    heading,
    scrollBox("Differences", table),
    html("p", {class: "quiet"}, more > 0 ? `and ${counted(more, "stretch", "stretches")} more` : ""),
  ];
}

/** @type {(binary: Binary, sframe: SFrame, index: number, stretch: number) => HTMLElement} */
function differenceRow(binary, sframe, index, stretch) {
  const from = Number(binary.stretches.start[stretch] - binary.start[index]),
    to = from + binary.stretches.size[stretch];
  const verdict =
    {
      [VERDICT.DIFFERENT]: "different",
      [VERDICT.ONLY_FRAMES]: `only in ${binary.tables}`,
      [VERDICT.ONLY_SFRAME]: `only in ${sframe.name}`,
    }[binary.stretches.verdict[stretch]] ?? "neither has a rule";
  return html(
    "tr",
    {},
    html("td", {class: "mono number"}, `+${hexadecimal(from)} to +${hexadecimal(to)}`),
    html("td", {class: "bad"}, verdict),
    html("td", {class: "mono text"}, framesText(binary, index, stretch)),
    html("td", {class: "mono text"}, sframeText(binary, stretch)),
  );
}
