"""Ours beside the programs of others that do the same job, on one real API server, with the same nodes and pods."""
