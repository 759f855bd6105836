// What an address of the page shows over it: the part about one file.
/** @import {Details} from "./survey_details.js" */
/** @import {FileList} from "./survey_list.js" */
import {byId, html} from "../pages/common.js";
import {fileOf} from "./survey_file.js";

export class FileDialog {
  // `details` reads what the list does not have; it is asked when the first file is opened.
  /** @param {FileList} list @param {() => Promise<Details>} details */
  constructor(list, details) {
    this.list = list;
    this.readDetails = details;
    /** @type {Promise<Details> | null} */
    this.details = null;
    this.element = /** @type {HTMLDialogElement} */ (byId("file"));
    // What had the focus before, and which address is shown.
    /** @type {Element | null} */
    this.opener = null;
    this.shown = "";
    this.element.addEventListener("close", () => this.leave());
    this.element.addEventListener("click", (event) => {
      const isBeside = event.target === this.element;
      if (isBeside) this.element.close();
    });
    addEventListener("hashchange", () => this.follow());
  }

  // Show the file that the address names, or none.
  async follow() {
    const {hash} = location,
      match = /^#file=(\d+)$/.exec(hash),
      file = match ? Number(match[1]) : -1;
    if (file < 0 || file >= this.list.files.count) {
      if (this.element.open) this.element.close();
      return;
    }
    this.details ??= this.readDetails();
    const details = await this.details;
    // Another one may be wanted by now.
    if (location.hash !== hash) return;
    this.fill(details, file);
    this.shown = hash;
    if (!this.element.open) {
      this.opener = document.activeElement;
      this.element.showModal();
    }
    this.element.scrollTop = 0;
    byId("file-title").focus();
  }

  /** @type {(details: Details, file: number) => void} */
  fill(details, file) {
    const {name, parts} = fileOf(details, file);
    const onclick = () => this.element.close();
    const close = html("button", {type: "button", class: "small screen", onclick}, "Close");
    this.element.replaceChildren(
      html("header", {}, html("h2", {id: "file-title", tabindex: "-1"}, html("bdi", {}, name)), close),
      html("div", {class: "parts"}, parts),
    );
  }

  // Go back to where the file was opened.
  leave() {
    if (location.hash === this.shown) history.replaceState(null, "", location.pathname + location.search);
    this.element.replaceChildren();
    if (this.opener instanceof HTMLElement && this.opener.isConnected) this.opener.focus({preventScroll: true});
    else this.list.focus();
  }

  // What stands in a dialog would end with the first sheet, so a copy is printed.
  /** @type {(on: boolean) => void} */
  print(on) {
    byId("printed")?.remove();
    if (!on || !this.element.open) return;
    const whole = /** @type {Element} */ (this.element.cloneNode(true)),
      copy = html("div", {id: "printed"}, [...whole.children]);
    /** @type {NodeListOf<HTMLDetailsElement>} */
    const reasons = copy.querySelectorAll(".reason");
    for (const reason of reasons) reason.open = true;
    document.body.append(copy);
  }
}
