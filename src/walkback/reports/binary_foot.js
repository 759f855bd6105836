// The commands that print what the page shows.
/** @import {Binary} from "./binary_data.js" */
import {byId, folded, html, termAndValue} from "../pages/common.js";

/** @type {(binary: Binary) => void} */
export function fillFoot(binary) {
  const file = quoted(binary.file),
    option = binary.chosen ? ` --source ${binary.chosen}` : "";
  const commands = [
    ["size of the tables", `walkback size${option}`],
    ["what SFrame leaves out, and why", `walkback derive -o /dev/null${option}`],
    binary.sframe?.compared && ["where the two tables differ", "walkback compare"],
    ["what the code proves", "walkback verify"],
    ["list of functions", `walkback report --csv --figure functions${option}`],
    ["all rows", `walkback report --csv --figure rows${option}`],
  ].filter((entry) => Array.isArray(entry));
  const items = commands.map(([words, command]) => termAndValue(words, `${command} ${file}`, {class: "mono"}));
  byId("footer").replaceChildren(folded("The same numbers on the command line", html("dl", {class: "facts"}, items)));
}

// A name for shells; what is spelled out in it is so for them too.
/** @type {(name: string) => string} */
export const quoted = (name) =>
  name.includes("\\") ? `$'${name.replace(/'/g, "\\'")}'` : `'${name.replace(/'/g, "'\\''")}'`;
