"""Defragmentation with a price: the fewest moves that free the room a gang needs, and what each costs."""
