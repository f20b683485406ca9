"""Find the nearest sentences of a text file, in any language that the encoder knows.

python examples/search_translations.py news.en "Der Hund schläft."
"""

import sys
from pathlib import Path

from encoder import load_encoder
from miner import search_both

corpus, *queries = sys.argv[1:]
encoder = load_encoder()
lines = Path(corpus).read_text(encoding="utf-8").splitlines()
forward, _ = search_both(encoder.encode(queries), encoder.encode(lines), k=3)
for query, ids, cosines in zip(queries, forward.ids, forward.cosines, strict=True):
    print(query)
    for line, cosine in zip(ids, cosines, strict=True):
        print(f"  {cosine:.3f}  {lines[line]}")
