"""Manifests that people write: read with their lines, and checked without a cluster."""
