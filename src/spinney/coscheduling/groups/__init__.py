"""Groups of pods that are bound together: what each needs, who waits, which domains it may use."""
