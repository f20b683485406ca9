"""Train the judge on mined pairs of labelled corpora."""
