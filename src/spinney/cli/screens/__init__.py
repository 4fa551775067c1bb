"""A cluster on a terminal, page by page: what is shown, which keys do what, and the terminal itself."""
