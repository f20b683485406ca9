import subprocess
import sys

MODULES = ["atomic", "corpus.reader", "corpus.filesets", "pairs", "vectors.embeddings"]


def test_heavy_libraries_wait_for_their_first_use():
    imports = "; ".join(f"import miner.storage.{module}" for module in MODULES)
    heavy = "{'torch', 'apache_beam', 'faiss', 'pyarrow'}"
    code = f"import sys; {imports}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_plain_text_needs_no_arrow(tmp_path):
    path = tmp_path / "corpus.txt.gz"
    code = (
        "import gzip, sys; from miner.storage.corpus.reader import open_corpus\n"
        f"gzip.open({str(path)!r}, 'wb').write(b'one\\n')\n"
        f"assert [*next(open_corpus({str(path)!r})).texts] == ['one']\n"
        "print('pyarrow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
