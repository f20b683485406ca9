"""Readers of evaluation files, such as sentences, gold pairs and labels."""
