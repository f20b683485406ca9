"""Finished mining runs, with explanations, estimates and thresholds."""
