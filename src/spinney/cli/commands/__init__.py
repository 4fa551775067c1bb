"""What each command takes, by what the commands are about; what each does is in :mod:`spinney.cli.bodies`."""
