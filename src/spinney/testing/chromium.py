"""A real Chromium, driven over its DevTools protocol: for tests, benchmarks and screenshots of pages.

Nothing but Chromium and aiohttp is needed. A page remembers what it asked of whom and what it complained about, so a
test can say that it asked nobody else and broke no policy.
"""

import asyncio
import base64
import json
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from spinney.runtime.tasks import in_background

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_SECONDS: Final = 60.0
_LARGEST: Final = 64 * 1024 * 1024


class ChromiumFailed(RuntimeError):
    """Chromium did not start, or a page did not do what it was asked."""


def chromium_path() -> str | None:
    """Return where Chromium is, if it is installed."""
    return next((found for name in _NAMES if (found := shutil.which(name)) is not None), None)


@dataclass
class Tab:
    """One tab. Mutable: it fills with what the page asks for and complains about."""

    _browser: "Chromium"
    _session: str
    requests: list[str] = field(default_factory=list)
    """The addresses asked for, in order."""
    complaints: list[str] = field(default_factory=list)
    """Errors of scripts, and what the content security policy blocked."""

    async def open(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        await self._send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def choose(self) -> None:
        """Show this tab of the window, and with it hide the others."""
        await self._send("Page.bringToFront")

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, awaited."""
        answer = await self._send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise ChromiumFailed(f"{expression[:200]}: {answer['exceptionDetails'].get('exception', answer)}")
        return answer["result"].get("value")

    async def until(self, expression: str, *, within: float = _SECONDS) -> None:
        """Wait until an expression is true in the page."""
        try:
            async with asyncio.timeout(within):
                while not await self.evaluate(f"Boolean({expression})"):
                    await self._browser.clock_tick()
        except TimeoutError:
            shown = await self.evaluate("document.body.innerText")
            raise ChromiumFailed(f"waited {within:g} s for {expression}; the page shows:\n{shown[:3000]}") from None

    async def shows(self, text: str) -> None:
        """Wait until the page shows a text."""
        await self.until(f"document.body.innerText.includes({json.dumps(text)})")

    async def click(self, selector: str) -> None:
        """Click on what a selector finds first."""
        await self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    async def type(self, selector: str, text: str) -> None:
        """Put a text in place of what stands in an input."""
        found = f"const field = document.querySelector({json.dumps(selector)}); field.value = {json.dumps(text)};"
        await self.evaluate(f"{{ {found} field.dispatchEvent(new Event('input', {{ bubbles: true }})); }}")

    async def choose_file(self, selector: str, path: Path) -> None:
        """Put a file into a file input."""
        root = await self._send("DOM.getDocument")
        found = await self._send("DOM.querySelector", nodeId=root["root"]["nodeId"], selector=selector)
        await self._send("DOM.setFileInputFiles", files=[str(path)], nodeId=found["nodeId"])

    async def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move, press, release or turn the mouse."""
        await self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    async def key(self, key: str) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            await self._send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_CODES.get(key, 0)
            )

    async def screenshot(self) -> bytes:
        """Return what is visible, as PNG."""
        answer = await self._send("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])

    async def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a window and a colour scheme."""
        await self._send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.emulate(prefers_color_scheme="dark" if dark else "light")

    async def emulate(self, *, media: str = "", **features: str) -> None:
        """Have the page find what its user prefers (``forced_colors="active"``), and be shown on another medium."""
        found = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        await self._send("Emulation.setEmulatedMedia", media=media, features=found)

    async def _send(self, method: str, **parameters: Any) -> Any:
        return await self._browser.send(method, parameters, self._session)

    def hear(self, method: str, told: Any) -> None:
        """Take note of what happened in the page."""
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(str(details.get("exception", {}).get("description") or details.get("text")))
        elif method == "Log.entryAdded" and told["entry"]["source"] == "security":
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and told["type"] == "error":
            self.complaints.append(" ".join(str(each.get("value", each)) for each in told["args"]))


_CODES: Final = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Chromium:
    """A running Chromium. Use :func:`a_chromium`."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Tab] = {}

    async def page(self, *, width: int = 1280, height: int = 800, dark: bool = False) -> Tab:
        """Return a new tab."""
        target = await self.send("Target.createTarget", {"url": "about:blank"})
        attached = await self.send("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        page = self._pages[attached["sessionId"]] = Tab(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            await self.send(f"{domain}.enable", {}, attached["sessionId"])
        await page.resize(width, height, dark=dark)
        return page

    async def send(self, method: str, parameters: Any, session: str = "") -> Any:
        """Have Chromium do something; return what it answers."""
        self._number += 1
        answer = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_json({**message, "sessionId": session} if session else message)
        async with asyncio.timeout(_SECONDS):
            return await answer

    async def clock_tick(self) -> None:
        """Wait a moment before a page is looked at again."""
        await asyncio.sleep(0.05)

    async def listen(self) -> None:
        """Take answers and events until the connection ends."""
        async for message in self._socket:
            told = json.loads(message.data)
            answer = self._waiting.pop(told.get("id", 0), None)
            if answer is not None and not answer.done():
                if "error" in told:
                    answer.set_exception(ChromiumFailed(told["error"]["message"]))
                else:
                    answer.set_result(told["result"])
            elif (page := self._pages.get(told.get("sessionId", ""))) is not None:
                page.hear(told["method"], told["params"])


@asynccontextmanager
async def a_chromium(path: str) -> AsyncIterator[Chromium]:
    """Run a headless Chromium with an empty profile for the time of the block."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            path,
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            address = await _address(process)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=_LARGEST) as socket,
            ):
                browser = Chromium(socket)
                async with in_background(browser.listen()):
                    yield browser
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said = b""
    async with asyncio.timeout(_SECONDS):
        while line := await process.stderr.readline():
            said += line
            if line.startswith(b"DevTools listening on "):
                return line.decode().split()[-1]
    raise ChromiumFailed(f"Chromium did not start: {said.decode(errors='replace')[-1000:]}")
