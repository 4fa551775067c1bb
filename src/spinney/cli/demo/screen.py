"""Where the demo is shown: a live picture on a terminal, or plain lines anywhere else."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from spinney.cli.picture import Scene, draw, summary


class Screen(ABC):
    """Shows the cluster as it changes, and what is said about it."""

    reading_time: ClassVar[float] = 0.0
    """Seconds to leave what was said to a reader before the story goes on."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @abstractmethod
    def chapter(self, title: str) -> None:
        """Begin a part of the story."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Say something that stays on the screen."""

    @abstractmethod
    def show(self, scene: Scene) -> None:
        """Show the cluster as it is now."""


class PlainScreen(Screen):
    """Lines of text; the picture is a line per gang whenever its state changes."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._shown: dict[str, str] = {}

    def chapter(self, title: str) -> None:
        self._console.print(f"\n== {title}")

    def say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def show(self, scene: Scene) -> None:
        for gang, line in summary(scene).items():
            if self._shown.get(gang) != line.state:
                self._shown[gang] = line.state
                self._console.print(f"   {gang} {line.text}")


class LiveScreen(Screen):
    """A picture that is redrawn in place below the text."""

    reading_time = 2.5

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, refresh_per_second=12, transient=True)
        self._scene: Scene | None = None

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)
        if self._scene is not None:
            self._console.print(draw(self._scene))

    def chapter(self, title: str) -> None:
        self._live.console.print(Padding(Rule(Text(title, style="bold"), align="left"), (1, 0, 0, 0)))

    def say(self, text: str) -> None:
        self._live.console.print(Text(text), soft_wrap=True)  # what is to be copied stays in one piece

    def show(self, scene: Scene) -> None:
        self._scene = scene
        self._live.update(Group(Text(), draw(scene)))
