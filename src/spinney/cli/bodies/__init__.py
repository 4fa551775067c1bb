"""What each command does; what it takes is declared in the module of its name in :mod:`spinney.cli`."""
