"""Configuration files and plugins that a command is given."""
