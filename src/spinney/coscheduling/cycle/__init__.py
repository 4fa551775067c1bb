"""Pods one after another: the queue, the scheduling and binding cycle of each, and their metrics."""
