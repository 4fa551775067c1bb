"""What each command takes, one module per command; what it does is in :mod:`spinney.cli.bodies`."""
