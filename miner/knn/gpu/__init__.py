"""The search on CUDA devices: one product for both directions."""
