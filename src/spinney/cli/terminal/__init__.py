"""What commands print, and how much they log."""
