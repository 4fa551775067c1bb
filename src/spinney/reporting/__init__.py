"""What schedulers write to the status of objects: one module per kind, verdict to patch, and one controller."""
