"""What a plugin answers: a code, reasons for people, and who said it."""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from spinney.reporting.pods import UNSCHEDULABLE
from spinney.runtime.faults import told


class Code(Enum):
    """The kinds of answer an extension point may give."""

    SUCCESS = auto()
    UNSCHEDULABLE = auto()
    """Not now; evicting other pods might help."""
    UNRESOLVABLE = auto()
    """Not now, and evicting pods cannot help."""
    WAIT = auto()
    """Permit only: hold the pod where it is."""
    SKIP = auto()
    """This plugin has nothing to do for this pod."""
    ERROR = auto()
    """The plugin failed; the pod is retried with back-off."""


class FrameworkPluginFailed(Exception):
    """A plugin raised, or gave no proper answer; the text names plugin, extension point and fault."""

    def __init__(self, plugin: str, point: str, fault: str) -> None:
        super().__init__(f"plugin {plugin} failed at {point}: {fault}")
        self.plugin = plugin


class AnsweredError(Exception):
    """A plugin answered that it failed, where an answer is about one node of many."""


@dataclass(frozen=True, slots=True)
class Status:
    """One plugin's answer."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    waits: str = UNSCHEDULABLE
    """The reason that the condition of a refused pod gets; ``Unschedulable`` has autoscalers add nodes."""

    @classmethod
    def unschedulable(cls, *reasons: str) -> "Status":
        """Refuse the pod for now."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str, waits: str = UNSCHEDULABLE) -> "Status":
        """Refuse the pod for now, in a way no eviction can change; ``waits`` says for what, if not for a node."""
        return cls(Code.UNRESOLVABLE, reasons, waits=waits)

    @classmethod
    def error(cls, error: BaseException | str) -> "Status":
        """Report that something failed: what was raised, signed by the plugin if it was one, or what to say of it."""
        if isinstance(error, str):
            return cls(Code.ERROR, (error,))
        if isinstance(error, FrameworkPluginFailed):
            return cls(Code.ERROR, (str(error),), error.plugin)
        return cls(Code.ERROR, (told(error),))

    @property
    def ok(self) -> bool:
        """Tell whether the pod may go on."""
        return self.code is Code.SUCCESS or self.code is Code.SKIP

    @property
    def rejected(self) -> bool:
        """Tell whether the pod was refused, as opposed to the plugin having failed."""
        return self.code is Code.UNSCHEDULABLE or self.code is Code.UNRESOLVABLE

    @property
    def message(self) -> str:
        """Return the reasons as one text."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """Return the same answer, signed; the most frequent one needs no signature."""
        return self if self is SUCCESS else replace(self, plugin=plugin)


SUCCESS: Final = Status()
