"""What the dashboard costs: drawing a large cluster in Chromium, and fifty viewers of a busy one."""
