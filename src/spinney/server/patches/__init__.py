"""Changing objects by patches: JSON patch, merge patch, strategic merge patch, server-side apply."""
