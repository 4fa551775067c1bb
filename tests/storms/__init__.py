"""Storms over the whole stack, each from a seed: ``python -m tests.storms --seeds 100``."""
