"""What admission is asked about."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from spinney.api.field_error import FieldError
from spinney.api.struct import JSON
from spinney.server.exchange.message import ADMIN, User
from spinney.server.exchange.status import StatusError, forbidden
from spinney.server.kinds.kind import Kind

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True, kw_only=True)
class Attributes:
    """One write on its way to the store. Mutable: admission changes ``obj`` and collects ``warnings``."""

    kind: Kind
    operation: Operation
    namespace: str
    name: str
    obj: JSON | None
    old: JSON | None = None
    subresource: str = ""
    dry_run: bool = False
    user: User = ADMIN
    options: JSON = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def refused(self, why: str, *, causes: Iterable[FieldError] = ()) -> StatusError:
        """Return the 403 with which admission refuses the write."""
        return forbidden(self.kind.resource, self.name, why, causes=causes)
