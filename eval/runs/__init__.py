"""Questions to finished mining runs: their data, explanations, thresholds, a second score."""
