"""Tests of gangs."""
