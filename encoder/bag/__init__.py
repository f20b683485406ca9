"""The weighted bag: a sentence is the sum of its words, a word that of its pieces and n-grams."""
