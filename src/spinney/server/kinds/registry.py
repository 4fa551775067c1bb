"""The kinds that are served right now, by path and by name. CRDs add and remove kinds while the server runs."""

from collections.abc import Iterable, Iterator

from spinney.server.kinds.kind import Kind


class KindRegistry:
    """Kinds by group, version and plural; mutable. ``generation`` moves with every change, for caches."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._readers: dict[str, tuple[Kind, ...]] = {}  # of the collections that were asked about
        self.generation = 0
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        """Serve a kind, in place of an earlier one at the same path."""
        resource = kind.resource
        self._kinds[resource.group, resource.version, resource.plural] = kind
        self._changed()

    def remove(self, kind: Kind) -> None:
        """Stop serving a kind."""
        resource = kind.resource
        self._kinds.pop((resource.group, resource.version, resource.plural), None)
        self._changed()

    def _changed(self) -> None:
        self._readers.clear()
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind at a path."""
        return self._kinds.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind that objects with this apiVersion and kind have."""
        return next(
            (each for each in self if each.resource.kind == kind and each.resource.api_version == api_version), None
        )

    def readers(self, collection: str) -> tuple[Kind, ...]:
        """Return the kinds that read a collection: the versions of one."""
        if collection not in self._readers:
            self._readers[collection] = tuple(each for each in self if each.storage == collection)
        return self._readers[collection]

    def storing(self, collection: str) -> Kind | None:
        """Return the kind that reads a collection in its stored version, or any that reads it."""
        reading = self.readers(collection)
        return next((each for each in reading if each.stored_as_is), reading[0] if reading else None)

    def built_in(self, collection: str) -> Kind:
        """Return the kind that reads the collection of a built-in kind in its stored version."""
        kind = self.storing(collection)
        assert kind is not None, f"{collection} are built in"
        return kind

    def serves_version(self, group: str, version: str) -> bool:
        """Tell whether anything is served under a group and version."""
        return any(each.resource.group == group and each.resource.version == version for each in self)

    def __iter__(self) -> Iterator[Kind]:
        return iter(list(self._kinds.values()))
