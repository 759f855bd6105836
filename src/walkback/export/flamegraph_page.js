// The page of one flame graph: its data stands in the page.
import {byId} from "../pages/common.js";
import {showGraph} from "./flamegraph.js";

showGraph(JSON.parse(byId("data").textContent));
