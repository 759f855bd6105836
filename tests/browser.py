"""Drives headless Chromium, so that tests see pages as people do: looks, keys, the tree that screen readers get.

The browser is spoken to in the words of its DevTools protocol, as JSON between zero bytes, over two pipes that it
expects as descriptors 3 and 4. Nothing listens on a port, and every wait ends.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from peers import peer

_PATIENCE = 60.0
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Tab": ("Tab", 9, ""),
    "Escape": ("Escape", 27, ""),
    "Space": ("Space", 32, " "),
    "Backspace": ("Backspace", 8, ""),
    "PageUp": ("PageUp", 33, ""),
    "PageDown": ("PageDown", 34, ""),
    "End": ("End", 35, ""),
    "Home": ("Home", 36, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
}
"""Names of keys: their code, their number, and the text that they make."""
_MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}


class BrowserError(Exception):
    """The browser refused, died, or did not answer in time; or a script on a page raised."""


class Browser:
    """One browser; each page of it has storage and settings of its own."""

    def __init__(self) -> None:
        program = shutil.which("chromium") or peer("chromium")
        self._profile = tempfile.mkdtemp(prefix="walkback-browser-")
        to_read, self._out = _pipe()
        self._in, to_write = _pipe()
        nothing = os.open(os.devnull, os.O_RDWR)
        places = ((nothing, 0), (nothing, 1), (nothing, 2), (to_read, 3), (to_write, 4))
        self._pid = os.posix_spawn(
            program,
            [program, *_OPTIONS, f"--user-data-dir={self._profile}", "about:blank"],
            os.environ | {"HOME": self._profile},
            file_actions=[(os.POSIX_SPAWN_DUP2, end, place) for end, place in places],
            setpgroup=0,
        )
        for end in (to_read, to_write, nothing):
            os.close(end)
        os.set_blocking(self._in, False)
        self._rest = b""
        self._number = 0
        self._events: dict[str, deque[dict[str, Any]]] = {}
        self._answers: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and all that it started, and take its profile away."""
        with suppress(BrowserError):
            self.ask("Browser.close")
        for end in (self._out, self._in):
            os.close(end)
        deadline = time.monotonic() + 10
        while os.waitpid(self._pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.killpg(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
                break
            time.sleep(0.01)
        shutil.rmtree(self._profile, ignore_errors=True)

    def page(self, path: str | os.PathLike[str] | None = None, **how: Any) -> Page:
        """A new page; the arguments are those of `Page.look` and `Page.open`."""
        context = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, context)
        page.look(**how)
        if path is not None:
            page.open(path)
        return page

    def ask(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except OSError as error:
            raise BrowserError(f"{method}: {error}") from error
        deadline = time.monotonic() + _PATIENCE
        while self._number not in self._answers:
            self._receive(deadline, method)
        answer = self._answers.pop(self._number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def events(self, session: str) -> Iterator[dict[str, Any]]:
        """What a page has told since it was asked last, oldest first."""
        waiting = self._events.get(session, deque())
        while waiting:
            yield waiting.popleft()

    def wait(self, session: str, deadline: float, what: str) -> None:
        """Wait until a page tells something."""
        while not self._events.get(session):
            self._receive(deadline, what)

    def _receive(self, deadline: float, what: str) -> None:
        """Read what is there, or wait for some."""
        if not select.select([self._in], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise BrowserError(f"{what}: no answer in {_PATIENCE:.0f} seconds")
        data = os.read(self._in, 1 << 20)
        if not data:
            raise BrowserError(f"{what}: the browser is gone")
        *whole, self._rest = (self._rest + data).split(b"\0")
        for one in whole:
            message = json.loads(one)
            if "id" in message:
                self._answers[message["id"]] = message
            elif "sessionId" in message:
                self._events.setdefault(message["sessionId"], deque()).append(message)


class Page:
    """One page: what it says is wrong stands in `errors`, and what it loaded besides itself in `requests`."""

    def __init__(self, browser: Browser, session: str, context: str) -> None:
        self._browser, self._session, self._context = browser, session, context
        self._url = ""
        self._loaded = False
        self.errors: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command of the protocol for this page, and take in what it has told."""
        answer = self._browser.ask(method, self._session, **params)
        self._listen()
        return answer

    def close(self) -> None:
        self._browser.ask("Target.disposeBrowserContext", browserContextId=self._context)

    def look(
        self, *, width: int = 1280, height: int = 900, dark: bool = False, scale: float = 1, media: str = "screen"
    ) -> None:
        """Set the window's size in CSS pixels, whether the reader wants it dark, and the medium: screen or print."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.ask("Emulation.setEmulatedMedia", media=media, features=features)

    def open(self, path: str | os.PathLike[str]) -> None:
        """Load a file, or what has an address, and wait until it and its scripts are done loading."""
        is_address = isinstance(path, str) and path.startswith("http:")
        self._url = str(path) if is_address else Path(path).resolve().as_uri()
        self._loaded = False
        answer = self.ask("Page.navigate", url=self._url)
        if answer.get("errorText"):
            raise BrowserError(f"{self._url}: {answer['errorText']}")
        deadline = time.monotonic() + _PATIENCE
        while not self._loaded:
            self._browser.wait(self._session, deadline, self._url)
            self._listen()

    def evaluate(self, script: str) -> Any:
        """The value of an expression on the page, awaited if it is a promise."""
        answer = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(_exception(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression is true, and return its value."""
        deadline = time.monotonic() + _PATIENCE
        while not (value := self.evaluate(script)):
            if time.monotonic() > deadline:
                raise BrowserError(f"not true in {_PATIENCE:.0f} seconds: {script}")
            self.settle()
        return value

    def settle(self) -> None:
        """Wait until what was asked for has been drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, *keys: str) -> None:
        """Press keys one after the other, such as `Tab`, `a` or `Shift+Tab`."""
        for key in keys:
            *held, name = key.split("+") if len(key) > 1 else [key]
            modifiers = sum(_MODIFIERS[each] for each in held)
            code, number, text = _KEYS.get(name) or ("", _number(name), name)
            pressed = {"key": " " if name == "Space" else name, "windowsVirtualKeyCode": number, "modifiers": modifiers}
            if code:
                pressed["code"] = code
            kind = "keyDown" if text and not modifiers & 7 else "rawKeyDown"
            self.ask("Input.dispatchKeyEvent", type=kind, text=text if kind == "keyDown" else "", **pressed)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **pressed)
        self.settle()

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.press(*text)

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Click into what a selector finds, at a part of its width and height, as a mouse does."""
        self.drag(selector, x, x, y)

    def drag(self, selector: str, x: float, to: float, y: float = 0.5) -> None:
        """Press the mouse's button at a part of the width of what a selector finds, and let it go at another."""
        where = self.evaluate(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
            " if (!one) return null;"
            " one.scrollIntoView({block: 'nearest', inline: 'nearest', behavior: 'instant'});"
            " const box = one.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()"
        )
        if where is None:
            raise BrowserError(f"there is no {selector}")
        point, end = ({"x": where[0] + where[2] * part, "y": where[1] + where[3] * y} for part in (x, to))
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", **point)
        self.ask("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **point)
        if to != x:
            self.ask("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1, **end)
        self.ask("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **end)
        self.settle()

    def screenshot(self, path: str | os.PathLike[str] | None = None, *, whole: bool = False) -> bytes:
        """A picture as PNG: of what the window shows, or of the whole page."""
        self.settle()
        answer = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        picture = base64.b64decode(answer["data"])
        if path is not None:
            Path(path).write_bytes(picture)
        return picture

    def printed(self) -> bytes:
        """The page as it is printed, a PDF file."""
        return base64.b64decode(self.ask("Page.printToPDF", printBackground=True)["data"])

    def focus(self) -> str:
        """What has the focus: the name of its element, its id and its text, for keyboard walks."""
        return str(
            self.evaluate(
                "(() => { const it = document.activeElement; if (it === document.body) return 'body';"
                " const name = it.getAttribute('aria-label') ?? it.textContent.trim().slice(0, 40);"
                " return `${it.localName}#${it.id} ${name}`; })()"
            )
        )

    def accessible(self) -> list[tuple[str, str]]:
        """Role and name of everything that a screen reader is told of, in the order of the page."""
        nodes = self.ask("Accessibility.getFullAXTree")["nodes"]
        told = [node for node in nodes if not node["ignored"] and "role" in node]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in told]

    def sideways(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def unnamed(self) -> list[str]:
        """Roles of what can be used, or is a picture, and has no name that a screen reader could say."""
        named = {"button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "slider", "tab", "image"}
        named |= {"graphics-document", "listbox", "option", "table", "grid", "switch", "spinbutton", "region"}
        return [role for role, name in self.accessible() if role in named and not name.strip()]

    def _listen(self) -> None:
        for event in self._browser.events(self._session):
            params = event["params"]
            match event["method"]:
                case "Page.loadEventFired":
                    self._loaded = True
                case "Runtime.exceptionThrown":
                    self.errors.append(_exception(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                    words = [str(each.get("value", each.get("description", ""))) for each in params["args"]]
                    self.errors.append(f"console.{params['type']}: {' '.join(words)}")
                case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                    self.errors.append(f"{params['entry']['level']}: {params['entry']['text']}")
                case "Network.requestWillBeSent":
                    url = params["request"]["url"]
                    if url.split("#")[0] != self._url and not url.startswith("data:"):
                        self.requests.append(url)
                case "Inspector.targetCrashed":
                    raise BrowserError("the page crashed")


def _exception(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details["text"])


def _number(letter: str) -> int:
    """The number of the key of a letter or figure; what other characters are typed with differs between keyboards."""
    return ord(letter.upper()) if letter.isascii() and letter.isalnum() else 0


def _pipe() -> list[int]:
    """A pipe whose ends do not have the numbers that the browser's ends get."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved
