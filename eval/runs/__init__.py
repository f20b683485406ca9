"""What finished mining runs are asked: their data, explanations, thresholds, a second score."""
