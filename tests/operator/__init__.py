"""Tests of the operator."""  # noqa: A005 - the room is called so
