"""API server, simulated nodes, operator and both schedulers in one process, and clusters to begin with."""
