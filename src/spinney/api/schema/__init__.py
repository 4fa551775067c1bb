"""Defaulting, validation and CRD manifests, generated from the types."""
