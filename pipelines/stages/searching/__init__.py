"""The stages that search: indexes, tiles, and neighbours from all of them."""
