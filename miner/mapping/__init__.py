"""Two spaces of vectors brought together by an orthogonal map, with few known pairs or none."""
