"""Tests of talking to an API server."""
