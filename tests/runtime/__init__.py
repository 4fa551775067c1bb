"""Tests of time, chance and execution."""
