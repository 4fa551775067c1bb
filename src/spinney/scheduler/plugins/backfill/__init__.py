"""Reservation and backfill: who waits is given a place and a time; others pass only if they do not delay it."""
