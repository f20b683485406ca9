"""Train the judge of pairs: corpora made of parallel text, mined, and trees that learn from it."""
