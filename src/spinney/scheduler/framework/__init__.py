"""The plugin contract: what a plugin is, what it is shown and what it may register."""
