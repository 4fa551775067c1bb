"""Both schedulers over a snapshot: what would happen."""
