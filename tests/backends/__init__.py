"""Tests of the scheduler backends."""
