"""Whether nodes have the resources that a request asks for: now, or once what is terminating is gone."""

import numpy as np

from spinney.cluster.classes import RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.journal import Rows
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.table import Mask
from spinney.scheduler.framework.nodes import LastFit, Nodes


def resource_fit(nodes: Nodes, request: RequestClass, rows: Rows) -> tuple[Mask, Mask]:
    """Return, per row, whether the request fits once what is terminating is gone, and whether it fits now.

    Neither is to be written to: whoever asks the same next, before anything is booked, is given the same.
    """
    known, moment = nodes.last_fit, (nodes.table.usage.position, nodes.table.tries)
    if known is not None and known.rows is rows and known.request is request and known.moment == moment:
        return known.later, known.now
    later, now = _resource_fit(nodes, request, rows)
    nodes.last_fit = LastFit(rows, request, moment, later, now)
    return later, now


def _resource_fit(nodes: Nodes, request: RequestClass, rows: Rows) -> tuple[Mask, Mask]:
    table = nodes.table
    later = table.alive[rows]
    now = later.copy()
    columns, amounts = request.columns, request.amounts[:, None]
    now &= (table.idle_at(columns, rows) >= amounts).all(axis=0)
    later &= (table.free_at(columns, rows) >= amounts).all(axis=0)
    if request.share is not None:
        later_devices, now_devices = sharable_devices(nodes, request, rows)
        later &= later_devices >= request.share.devices
        now &= now_devices >= request.share.devices
    return later, now & later


def sharable_devices(nodes: Nodes, request: RequestClass, rows: Rows) -> tuple[Vector, Vector]:
    """Return, per row, how many devices could take a share of the request: eventually, and now."""
    share = request.share
    assert share is not None, "only requests for a share of a device are asked about"
    table, shared = nodes.table, nodes.ledger.shared
    parts = share.parts_on_each(table.gpu_memory[rows])
    wanted = parts[:, None]
    now: Vector = np.maximum(table.idle[rows, GPU], 0)
    later: Vector = np.maximum(table.idle[rows, GPU] + table.releasing[rows, GPU], 0)
    now += (shared.free_now(rows) >= wanted).sum(axis=1)
    later += (shared.kept_later(rows) >= wanted).sum(axis=1)
    too_big = parts > DEVICE
    if too_big.any():
        now[too_big] = later[too_big] = 0
    return later, now
