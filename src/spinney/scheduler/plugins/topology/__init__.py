"""The topology plugin: nodes divided by the domains that a gang requires or prefers."""
