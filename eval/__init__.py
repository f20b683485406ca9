"""Measuring: BUCC scores, similarity search, and the data sets they are measured on.

Import the modules by name (``from eval.metrics.bucc import ...``): the bare package hides a
builtin.
"""
