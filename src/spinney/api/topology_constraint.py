"""How tightly a Grove level is packed, and the CEL rules its CRD carries.

A constraint names domains of a ClusterTopologyBinding (``rack``), not node labels, and applies to each replica of the
level it stands on. ``packDomain`` is the older spelling of ``pack.required``: it still reads, and still works on
objects that have it, but no new constraint may use it.
"""

from typing import Annotated, Final

from spinney.api.fields import described, rule, rules, schema
from spinney.api.struct import Struct

DOMAIN_PATTERN: Final = r"^[a-z][a-z0-9-]*$"

Domain = Annotated[str, schema({"minLength": 1, "maxLength": 63, "pattern": DOMAIN_PATTERN})]


class TopologyPack(Struct, frozen=True, kw_only=True):
    """The domain everything must lie in, and the narrower one it should."""

    required: Annotated[Domain, described("The domain that must hold all pods of a replica.")] | None = None
    preferred: Annotated[Domain, described("The domain that should hold them where possible.")] | None = None


class TopologyConstraint(Struct, frozen=True, kw_only=True):
    """Packing of each replica of a level into topology domains."""

    topology_name: (
        Annotated[str, described("The ClusterTopologyBinding that defines the domains; inherited.")] | None
    ) = None
    pack: (
        Annotated[
            TopologyPack,
            rules(rule("has(self.required) || has(self.preferred)", "pack must set required or preferred")),
        ]
        | None
    ) = None
    pack_domain: Annotated[Domain, described("Deprecated: use pack.required.")] | None = None

    @property
    def required(self) -> str | None:
        """Return the domain that must hold each replica, in either spelling."""
        if self.pack is not None and self.pack.required is not None:
            return self.pack.required
        return self.pack_domain

    @property
    def preferred(self) -> str | None:
        """Return the domain that should hold each replica."""
        return self.pack.preferred if self.pack is not None else None


ConstraintField = Annotated[
    TopologyConstraint,
    rules(
        rule("has(self.pack) || has(self.packDomain)", "topologyConstraint must set pack"),
        rule(
            "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            "packDomain and pack.required are two spellings of one field: set pack.required only",
        ),
        rule(
            "oldSelf.hasValue() || !has(self.packDomain)",
            "packDomain is deprecated and cannot be used in a new constraint: set pack.required",
            reason="FieldValueForbidden",
            optional_old_self=True,
        ),
    ),
]
"""A topology constraint as a field, with the rules that the API server checks."""
