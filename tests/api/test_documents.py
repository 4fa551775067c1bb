"""Configuration is read strictly, however its fields are declared."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

import msgspec
import pytest

from spinney.api.documents import LARGE, InvalidDocument, decode, parse, parse_json
from spinney.backends.kube import KubeSchedulerConfig


class Inner(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part with two keys."""

    wait_for: Annotated[timedelta, msgspec.Meta(description="How long.")] = timedelta()
    size: int = 0


class Outer(msgspec.Struct, frozen=True, kw_only=True):
    """A document that holds the part in every way a type can be written down."""

    plain: Inner = Inner()
    described: Annotated[Inner, msgspec.Meta(description="Said more of.")] = Inner()
    optional: Annotated[Inner, msgspec.Meta(description="May be left out.")] | None = None
    listed: Annotated[tuple[Inner, ...], msgspec.Meta(description="Several.")] = ()
    named: Mapping[str, Inner] = {}


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A document with words of a closed set."""

    kinds: tuple[Literal["Job", "JobSet"], ...] = ()


def test_a_word_that_is_none_of_the_set_is_answered_with_the_nearest() -> None:
    """The message has what was found and what was meant, or all that could be."""
    for written, hint in (("Jobs", "did you mean 'Job'?"), ("Pod", "expected one of Job, JobSet")):
        with pytest.raises(InvalidDocument) as refused:
            decode(Chosen, parse(f"kinds: [{written}]", "file.yaml"))
        assert str(refused.value) == f"file.yaml:1: kinds[0]: found '{written}'; {hint}"


WAYS = {
    "plain": "plain: {%s}",
    "described": "described: {%s}",
    "optional": "optional: {%s}",
    "listed[0]": "listed: [{%s}]",
    "named.one": "named: {one: {%s}}",
}


@pytest.mark.parametrize("path", WAYS)
def test_an_unknown_key_is_found_wherever_it_stands(path: str) -> None:
    """A misspelt key is named with the nearest one, also in fields that are annotated, optional, listed or mapped."""
    with pytest.raises(InvalidDocument) as caught:
        decode(Outer, parse(WAYS[path] % "sise: 3", "file"))
    assert [str(problem) for problem in caught.value.problems] == [
        f"file:1: {path}.sise: unknown key; did you mean 'size'?"
    ]


@pytest.mark.parametrize("path", WAYS)
def test_a_null_is_as_good_as_absent(path: str) -> None:
    """As everywhere in Kubernetes, a field that is null has its default."""
    assert decode(Outer, parse(WAYS[path] % "size: null, waitFor: null", "file")) == decode(
        Outer, parse(WAYS[path] % "", "file")
    )


def test_gang_scheduling_may_be_null() -> None:
    """The setting is a pointer in the draft document: null leaves it at its default."""
    for text in ("GangScheduling: null", "gangScheduling: null", "{}"):
        assert decode(KubeSchedulerConfig, parse(text, "file")) == KubeSchedulerConfig()


@pytest.mark.parametrize("path", WAYS)
def test_a_duration_is_read_wherever_it_stands(path: str) -> None:
    """Durations are written as Kubernetes writes them, at any depth."""
    decoded = decode(Outer, parse(WAYS[path] % "waitFor: 1m30s", "file"))
    parts = [decoded.plain, decoded.described, decoded.optional, *decoded.listed, *decoded.named.values()]
    assert timedelta(seconds=90) in [part.wait_for for part in parts if part is not None]


def test_a_large_json_document_keeps_its_lines() -> None:
    """What is read as JSON still says in which line a part stands, of a part of a part as well."""
    text = '{"items": [\n{"a": 1},\n{"b":\n {"c": "' + "x" * LARGE + '"}}]}'
    document = parse_json(text, "file")

    assert document is not None
    assert [document.line("items", 1), document.at("items", 1).line("b", "c")] == [3, 4]
    assert parse_json('{"items": []}', "file") is None
