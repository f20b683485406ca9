"""The command lines bucc-score, eval-encoder, and mine-corpus's questions to finished runs."""
