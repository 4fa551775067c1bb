"""Readers of published traces, one module each: a function that returns a :class:`~spinney.sim.replay.trace.Trace`."""
