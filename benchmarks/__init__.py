"""Benchmarks: each prints a ratio measured in one run, and fails when it misses its target."""
