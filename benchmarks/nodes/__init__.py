"""What simulated nodes cost: `python -m benchmarks.nodes`."""
