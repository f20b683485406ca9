"""Search on CUDA devices, with one product for both directions."""
