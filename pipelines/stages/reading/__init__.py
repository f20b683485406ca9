"""The stages that read corpora: their languages, documents, cut into shards, and rejects."""
