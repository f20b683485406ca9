"""The weighted bag, whose vectors are sums over words, pieces and n-grams."""
