"""Which objects a list or a watch is about."""

from collections.abc import Mapping
from dataclasses import dataclass

from spinney.api.selectors import FieldSelector, InvalidSelector, Selector, SelectorOperator
from spinney.server.exchange.status import bad_request
from spinney.server.kinds import Kind
from spinney.server.store import Record


@dataclass(frozen=True, slots=True)
class CompiledSelectors:
    """Label and field selectors, compiled against the positions of a kind's selectable fields."""

    labels: Selector | None = None
    fields: tuple[tuple[int, str, bool], ...] = ()
    name: tuple[tuple[str, bool], ...] = ()
    namespace: tuple[tuple[str, bool], ...] = ()
    labelled: tuple[tuple[str, str], ...] = ()  # what the label selector asks for at least, to look at first

    @property
    def everything(self) -> bool:
        """Whether every object is selected."""
        return self.labels is None and not self.fields and not self.name and not self.namespace

    @property
    def only_name(self) -> str | None:
        """The one name that can match, if the selector says so."""
        return next((value for value, equal in self.name if equal), None)

    def matches(self, record: Record) -> bool:
        """Tell whether a record is selected."""
        present = record.labels
        for key, wanted in self.labelled:
            if present.get(key) != wanted:
                return False
        if self.labels is not None and not self.labels.matches(present):
            return False
        for value, equal in self.name:
            if (record.key.name == value) is not equal:
                return False
        for value, equal in self.namespace:
            if (record.key.namespace == value) is not equal:
                return False
        values = record.fields
        return all((values[position] == value) is equal for position, value, equal in self.fields)


def selection(kind: Kind, query: Mapping[str, str], name: str | None = None) -> CompiledSelectors:
    """Return the selection that a request's parameters ask for; raise a 400 if they cannot be understood."""
    labels, fields, names, namespaces = None, [], [], []
    try:
        if text := query.get("labelSelector"):
            labels = Selector.parse(text)
        parsed = FieldSelector.parse(query.get("fieldSelector", ""))
    except InvalidSelector as error:
        raise bad_request(f"unable to parse requirement: {error}") from error
    if name is not None:
        names.append((name, True))
    for requirement in parsed.requirements:
        if requirement.path == "metadata.name":
            names.append((requirement.value, requirement.equal))
        elif requirement.path == "metadata.namespace" and requirement.path not in kind.hidden_labels:
            namespaces.append((requirement.value, requirement.equal))
        elif (position := kind.label_index.get(requirement.path)) is not None:
            fields.append((position, requirement.value, requirement.equal))
        else:
            raise bad_request(f"field label not supported: {requirement.path}")
    return CompiledSelectors(labels, tuple(fields), tuple(names), tuple(namespaces), _labelled(labels))


def _labelled(labels: Selector | None) -> tuple[tuple[str, str], ...]:
    requirements = labels.requirements if labels is not None else ()
    single = [each for each in requirements if each.operator is SelectorOperator.IN and len(each.values) == 1]
    return tuple((each.key, each.values[0]) for each in single)
