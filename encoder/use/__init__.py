"""The multilingual Universal Sentence Encoder (Yang et al. 2019), with a package's weights."""
