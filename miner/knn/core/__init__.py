"""Parts of the exact search."""
