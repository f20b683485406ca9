"""The judge, which estimates the probability that a pair is correct."""
