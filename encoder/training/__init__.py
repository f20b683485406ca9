"""Training: data, objectives, the loop, and the recipe that joins them."""
