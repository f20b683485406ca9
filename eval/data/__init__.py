"""Reading the files that evaluation needs: sentences, gold, candidates, and the published sets."""
