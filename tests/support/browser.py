"""A real Chromium without a window, for tests of pages: opens one, evaluates expressions in it, presses keys.

It speaks Chromium's own debugging protocol. Everything a page asks the network for and everything that goes wrong in it is kept.
"""

import asyncio
import base64
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ANSWER_SECONDS = 60
WAIT_SECONDS = 45
_LISTENING = "DevTools listening on "
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-port=0",
)

_CODES = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
_WRITTEN = {"Enter": "\r", " ": " "}
"""Keys that Chromium takes for what they do only with their number, and with what they write."""

Message = dict[str, Any]  # JSON of the protocol


def chromium() -> str | None:
    """Return where Chromium is; None when it is not installed."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def chromium_command(folder: Path) -> list[str]:
    """Return how to start Chromium with its own files in a folder; on its standard error it says where it listens."""
    return [chromium() or PROGRAMS[0], *_FLAGS, f"--user-data-dir={folder}"]


@contextmanager
def browser_of(process: subprocess.Popen[str]) -> Iterator["Browser"]:
    """Talk to a Chromium that has just been started, and end it."""
    with process, asyncio.Runner() as runner:
        try:
            browser = Browser(runner)
            runner.run(browser.connect(_address(process)))
            yield browser
            runner.run(browser.disconnect())
        finally:
            process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    lines = []
    for line in process.stderr or ():
        if line.startswith(_LISTENING):
            return line.removeprefix(_LISTENING).strip()
        lines.append(line)
    raise AssertionError(f"Chromium did not start: {''.join(lines)}")


class Browser:
    """A connection to Chromium."""

    def __init__(self, runner: asyncio.Runner) -> None:
        """Talk in the loop of a runner."""
        self._runner = runner
        self._numbers = count(1)
        self.events: list[Message] = []

    async def connect(self, address: str) -> None:
        """Begin to talk."""
        self._client = aiohttp.ClientSession()
        self._socket = await self._client.ws_connect(address, max_msg_size=0)

    async def disconnect(self) -> None:
        """Leave Chromium alone."""
        await self._socket.close()
        await self._client.close()

    def call(self, method: str, session: str = "", **parameters: Any) -> Message:
        """Ask for something and wait for the answer."""
        return self._runner.run(self._call(method, session, parameters))

    async def _call(self, method: str, session: str, parameters: Message) -> Message:
        number = next(self._numbers)
        await self._socket.send_json(
            {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        )
        while (message := await self._receive()).get("id") != number:
            pass
        assert "error" not in message, f"{method}: {message['error']}"
        return dict(message["result"])

    def wait_for(self, event: str, session: str) -> None:
        """Wait until an event has come."""
        self._runner.run(self._wait_for(event, session))

    async def _wait_for(self, event: str, session: str) -> None:
        while not any(message["method"] == event and message.get("sessionId") == session for message in self.events):
            await self._receive()

    async def _receive(self) -> Message:
        message: Message = await self._socket.receive_json(timeout=ANSWER_SECONDS)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, address: str, width: int = 1200, height: int = 900) -> "Tab":
        """Open a page in a tab of its own, and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        tab = Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"], target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        tab.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired", tab.session)
        return tab


class Tab:
    """One page."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        """Belong to a browser."""
        self._browser, self.session, self.target = browser, session, target

    def call(self, method: str, **parameters: Any) -> Message:
        """Ask this tab for something."""
        return self._browser.call(method, self.session, **parameters)

    def value(self, expression: str) -> Any:  # any JSON
        """Return what an expression gives in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> Any:  # any JSON
        """Wait until an expression gives something that is true in the page, and return it."""
        found = self.value(
            f"""new Promise((done) => {{
                const end = performance.now() + {WAIT_SECONDS * 1000};
                const look = () => {{
                    const found = (() => {expression})();
                    if (found || performance.now() > end) done(found instanceof Node || found);
                    else setTimeout(look, 25);
                }};
                look();
            }})"""
        )
        assert found, f"this never came: {expression}; the page says: {self.text('body')[:2000]}"
        return found

    def text(self, selector: str) -> str:
        """Return what stands in an element; nothing where there is none."""
        return str(self.value(f"document.querySelector({selector!r})?.innerText ?? ''"))

    def wait_text(self, selector: str, text: str) -> str:
        """Wait until a text stands in an element, and return everything that does."""
        return str(
            self.wait(f"(found => found.includes({text!r}) && found)(document.querySelector({selector!r})?.innerText ?? '')")
        )

    def settle(self) -> None:
        """Wait until the page is painted and has heard of its scrolling."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def focus(self, selector: str) -> None:
        """Go to an element with the keyboard."""
        self.value(f"document.querySelector({selector!r}).focus()")
        self.settle()

    def scroll_to(self, selector: str) -> None:
        """Bring an element into the middle of the window."""
        self.value(f"document.querySelector({selector!r}).scrollIntoView({{block: 'center'}})")
        self.settle()

    def place_of(self, selector: str) -> list[float]:
        """Return left, top, width and height of an element in the window."""
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        return list(self.value(f"(box => [box.x, box.y, box.width, box.height])({box})"))

    def type(self, selector: str, text: str) -> None:
        """Write into a field."""
        self.focus(selector)
        self.call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        known = {"windowsVirtualKeyCode": _CODES[key]} if key in _CODES else {}
        written = {"text": _WRITTEN[key]} if key in _WRITTEN else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **known, **written)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **known)

    def point(self, x: float, y: float) -> None:
        """Move the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        self.scroll_to(selector)
        left, top, width, height = self.place_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=left + width / 2, y=top + height / 2, button="left", clickCount=1)

    def click_text(self, selector: str, text: str) -> None:
        """Click the first of some elements that has a text."""
        self.wait(f"[...document.querySelectorAll({selector!r})].some(each => each.innerText.trim() === {text!r})")
        self.value(
            "document.querySelectorAll('[data-clicked]').forEach(each => each.removeAttribute('data-clicked'));"
            f"[...document.querySelectorAll({selector!r})].find(each => each.innerText.trim() === {text!r}).dataset.clicked = ''"
        )
        self.click("[data-clicked]")

    def colours(self, scheme: str) -> None:
        """Prefer light or dark from now on."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def resize(self, width: int, height: int) -> None:
        """Make the window as large as this."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.settle()

    def picture(self, *, whole: bool = False) -> bytes:
        """Return what the window shows, or the whole page, as a PNG."""
        self.settle()
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])

    def close(self) -> None:
        """Close the page."""
        self._browser.call("Target.closeTarget", targetId=self.target)

    @property
    def requests(self) -> list[str]:
        """Everything the page has asked for, itself included."""
        return [event["params"]["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    @property
    def problems(self) -> list[Message]:
        """What went wrong: exceptions, errors and warnings in the console, refusals of the browser."""
        written = [
            event["params"]
            for event in self._events("Runtime.consoleAPICalled")
            if event["params"]["type"] in ("error", "warning", "assert")
        ]
        thrown = [event["params"]["exceptionDetails"] for event in self._events("Runtime.exceptionThrown")]
        return written + thrown + [event["params"]["entry"] for event in self._events("Log.entryAdded")]

    def forget_refusals(self) -> None:
        """Take answers that refuse something, and those that do not come, for what a test wanted."""
        entries = [event for event in self._events("Log.entryAdded") if event["params"]["entry"].get("source") == "network"]
        self._browser.events[:] = [event for event in self._browser.events if event not in entries]

    def _events(self, method: str) -> list[Message]:
        return [event for event in self._browser.events if event["method"] == method and event.get("sessionId") == self.session]
