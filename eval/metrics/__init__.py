"""Figures from arrays: BUCC F1, search errors, retrieval, correlation, intervals."""
