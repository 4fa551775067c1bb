"""Decode pods into projections, and into the official client's models; the target is a tenth of its cost.

Both decode the same 20 000 JSON texts, in turns of a thousand, so that a busy machine slows both alike. Both run with
the garbage collector on, at its defaults, each turn from a collected heap. Projections are all kept, as a watch cache
keeps them; the official models are let go after each turn, which is to their advantage. The official client takes its
own path from response to models: ``json.loads``, then the deserialization every one of its calls goes through.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from random import Random

import msgspec
from kubernetes.client import ApiClient, Configuration

from benchmarks.runtime.objects import a_pod, encoded
from spinney.api.core import Pod

PODS = 20_000
TURN = 1_000
TARGET = 0.1


def main() -> int:
    """Measure, print, and return 1 if the target is missed."""
    chance = Random(0)
    texts = [encoded(a_pod(number, number, chance)) for number in range(PODS)]
    size = sum(map(len, texts)) / len(texts)
    project = msgspec.json.Decoder(Pod).decode
    # Configuration is passed in: looking for one on this machine is no part of decoding.
    client = ApiClient(Configuration())
    kept: list[Pod] = []
    ours = theirs = 0.0
    for start in range(0, PODS, TURN):
        turn = texts[start : start + TURN]
        seconds, decoded = timed(lambda turn=turn: [project(text) for text in turn])
        ours += seconds
        kept += decoded
        theirs += timed(lambda turn=turn: [official(client, text) for text in turn])[0]
    ratio = ours / theirs
    print(f"objects: {len(kept)} pods of {size / 1000:.1f} KB")
    print(f"  projections      {ours:7.2f} s, {ours / PODS * 1e6:7.1f} µs per pod")
    print(f"  official client  {theirs:7.2f} s, {theirs / PODS * 1e6:7.1f} µs per pod")
    print(f"  ratio {ratio:.4f} (1/{1 / ratio:.0f}), target at most {TARGET}")
    return 0 if ratio <= TARGET else 1


def official(client: ApiClient, text: bytes) -> object:
    """Decode one pod into the official client's model."""
    # The name is private, and the only way to its deserialization that needs no HTTP response.
    return client._ApiClient__deserialize(json.loads(text), "V1Pod")


def timed(work: Callable[[], list[Pod]]) -> tuple[float, list[Pod]]:
    """Return how long ``work`` takes from a collected heap, and its result."""
    gc.collect()
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    sys.exit(main())
