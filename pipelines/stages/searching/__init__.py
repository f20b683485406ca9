"""Stages that search for neighbours, with indexes, cells and tiles."""
