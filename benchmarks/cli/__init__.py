"""How long people wait for the command line."""
