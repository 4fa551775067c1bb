"""Turning decisions into API writes: bind, evict, conditions, events, and repair after failure."""
