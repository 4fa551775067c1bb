"""The packing plugin: nodes scored by what would still fit on them."""
