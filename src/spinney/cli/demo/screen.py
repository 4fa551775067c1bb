"""Where the demo is shown: a live picture on a terminal, or plain lines anywhere else."""

from collections.abc import Sequence
from typing import ClassVar, Final, Self

from rich.console import Group
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from spinney.cli.pictures.picture import Picture, Scene, summary
from spinney.cli.terminal.console import ReadableConsole

_ROOM_FOR_TEXT: Final = 10
"""Lines of a screen that the picture leaves to what is said."""
_LEAST_PICTURE: Final = 12
"""Lines a picture gets even if that leaves less."""
_INDENT: Final = "  "

Commands = Sequence[tuple[str, str]]
"""Commands to try, each with what it does."""


class Screen:
    """Shows the cluster as it changes and what is said about it, in lines: one per gang whenever its state changes."""

    reading_time: ClassVar[float] = 0.0
    """Seconds to leave what was said to a reader before the story goes on."""

    def __init__(self) -> None:
        self._console = ReadableConsole(highlight=False, soft_wrap=True)
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self._console.print(f"\n== {title}")

    def say(self, text: str) -> None:
        """Say something that stays on the screen."""
        self._console.print(text, markup=False)

    def offer(self, heading: str, commands: Commands) -> None:
        """Say which commands to try; each stays in one piece, to be copied."""
        self.say("\n".join(["", heading, *_listed(commands, None)]))

    def picture(self, scene: Scene) -> None:
        """Leave a picture of the cluster among what was said."""
        self._console.print(Picture(scene))

    def show(self, scene: Scene) -> None:
        """Show the cluster as it is now."""
        for gang, line in summary(scene).items():
            if self._shown.get(gang) != line.state:
                self._shown[gang] = line.state
                self._console.print(f"   {gang} {line.text}")


class LiveScreen(Screen):
    """The same as a picture that is redrawn in place below the text."""

    reading_time = 2.5

    def __init__(self) -> None:
        self._console = ReadableConsole(highlight=False)
        self._live = Live(console=self._console, refresh_per_second=12, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def chapter(self, title: str) -> None:
        self._console.print(Padding(Rule(Text(title, style="bold"), align="left"), (1, 0, 0, 0)))

    def say(self, text: str) -> None:
        for line in text.splitlines():
            indent = len(line) - len(line.lstrip())
            self._console.print(Padding(Text(line.lstrip()), (0, 0, 0, indent)))

    def offer(self, heading: str, commands: Commands) -> None:
        for line in ("", heading, *_listed(commands, self._console.width)):
            self._console.print(Text(line), soft_wrap=True)

    def picture(self, scene: Scene) -> None:
        self._console.print(self._drawn(scene))

    def show(self, scene: Scene) -> None:
        self._live.update(self._drawn(scene))

    def _drawn(self, scene: Scene) -> Group:
        height = max(self._console.height - _ROOM_FOR_TEXT, _LEAST_PICTURE)
        return Group(Text(), Picture(scene, height=height))


def _listed(commands: Commands, width: int | None) -> list[str]:
    """Return commands with their meanings beside them, or below where that is too wide."""
    longest = max(len(command) for command, _ in commands)
    beside = [f"{_INDENT}{command:{longest}}{_INDENT}{meaning}" for command, meaning in commands]
    if width is None or max(map(len, beside)) <= width:
        return beside
    return [line for command, meaning in commands for line in (f"{_INDENT}{command}", f"{_INDENT * 3}{meaning}")]
