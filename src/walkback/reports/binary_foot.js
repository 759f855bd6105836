// The commands that print what the page shows.
/** @import {Binary} from "./binary_data.js" */
import {byId, html} from "../pages/common.js";

/** @type {(binary: Binary) => void} */
export function fillFoot(binary) {
  const {file: name} = binary;
  // What is spelled out in a name is so for shells too.
  const file = name.includes("\\") ? `$'${name.replace(/'/g, "\\'")}'` : `'${name.replace(/'/g, "'\\''")}'`;
  const commands = [
    ["what the tables take", "walkback size"],
    ["what cannot be said, and why", "walkback derive -o /dev/null"],
    binary.sframe?.compared && ["where the two tables differ", "walkback compare"],
    ["the list of functions", "walkback report --csv --figure functions"],
    ["all rows", "walkback report --csv --figure rows"],
  ].filter((one) => Array.isArray(one));
  const shown = commands.map(([words, command]) =>
    html("div", {}, html("dt", {}, words), html("dd", {class: "mono"}, `${command} ${file}`)),
  );
  byId("footer").replaceChildren(
    html(
      "details",
      {},
      html("summary", {}, "The same numbers on the command line"),
      html("dl", {class: "facts"}, shown),
    ),
  );
}
