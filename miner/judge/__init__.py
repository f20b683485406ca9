"""The judge: from what is seen of a pair to the probability that both sentences translate."""
