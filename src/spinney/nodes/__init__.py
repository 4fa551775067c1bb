"""Simulated nodes: a client of any API server, embedded or real, that plays the kubelet's part."""
