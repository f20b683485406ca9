"""Metrics of arrays, such as BUCC F1, search errors and correlation."""
