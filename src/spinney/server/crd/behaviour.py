"""How objects of a custom kind behave: pruned, defaulted and validated by their schema."""

from functools import lru_cache

import msgspec

from spinney.api.struct import JSON
from spinney.server.crd.rules import SchemaRules, can_evaluate
from spinney.server.crd.structure import fill_defaults, prune
from spinney.server.crd.validation import SchemaValidator
from spinney.server.exchange.status import Cause
from spinney.server.kinds.kind import Behaviour

_BLOCKING = (  # what leaves an object so wrong that rules about it make no sense
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
)
_NOT_CHECKED = Cause(
    "FieldValueInvalid",
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing"
    " errors to complete validation",
)


class CustomBehaviour(Behaviour):
    """The schema of one version, applied to its objects."""

    def __init__(self, schema: JSON, *, deprecation: str | None = None) -> None:
        self._schema = schema
        self._validator, self._rules = _compiled(msgspec.json.encode(schema), evaluated=can_evaluate())
        self._deprecation = [deprecation] if deprecation else []

    def fill_defaults(self, obj: JSON) -> None:
        prune(obj, self._schema, root=True)
        fill_defaults(obj, self._schema)

    def unknown_fields(self, obj: JSON) -> list[str]:
        return prune(obj, self._schema, root=True)

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        causes = self._validator.validate(obj, old)
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, _NOT_CHECKED] if self._rules.any else causes
        return [*causes, *self._rules.validate(obj, old)]

    def warnings(self, obj: JSON) -> list[str]:
        return [*self._deprecation, *self._rules.not_evaluated]


@lru_cache(maxsize=64)
def _compiled(schema: bytes, *, evaluated: bool) -> tuple[SchemaValidator, SchemaRules]:
    """Compile a schema: when it is checked, when it is stored and when a server starts again it is the same one."""
    decoded = msgspec.json.decode(schema)
    return SchemaValidator(decoded), SchemaRules(decoded, evaluated=evaluated)
