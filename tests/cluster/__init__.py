"""Tests of the cluster in columns."""
