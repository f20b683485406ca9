"""The command lines mine-corpus, embed-corpus, train-encoder and fetch-laser."""
