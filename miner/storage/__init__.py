"""What mining reads and writes: corpora, embeddings, pairs, and the shards in between.

Import from the modules themselves. Loading them costs little: pyarrow waits for its first use.
"""
