// Elements of drawings. A page without any has no need for the address in here.
/** @import {Attributes, Children} from "./types.js" */
import {completed} from "./common.js";

const NAMESPACE = "http://www.w3.org/2000/svg";

/**
 * @type {<T extends keyof SVGElementTagNameMap>(
 *   tag: T, attributes?: Attributes, ...children: Children[]
 * ) => SVGElementTagNameMap[T]}
 */
export const svg = (tag, attributes = {}, ...children) =>
  completed(document.createElementNS(NAMESPACE, tag), attributes, children);
