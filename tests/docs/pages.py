"""The pages of the documentation, the command lines that they show, and which of these are run.

``python -m tests.docs.pages`` counts them.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.test_rooms import SCRIPTS

ROOT = Path(__file__).parents[2]
CARDS = (
    "encoder/assets/mini",
    "encoder/assets/mini/more",
    "encoder/assets/use/more",
    "encoders/wide",
)
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *(ROOT / card / "README.md" for card in CARDS),
    *sorted((ROOT / "docs").rglob("*.md")),
]

PROGRAMS = {*SCRIPTS, "pip", "python", "make", "bash", "docker", "cp", "rm", "zcat", "head", "for"}

# The first that fits says why a command is not run.
NOT_RUN = {
    "needs a cluster": (
        r"s3://|hdfs://|gs://|--runner |make (clusters|image)|docker |(engines|failures)\.py"
    ),
    "needs the network": r"pip |st:|laser:|adit fetch|make install",
    "needs a GPU": r"benchmarks/gpu\.py",
    "measures on data that the repository does not hold": (
        r"benchmarks/|evaluate |eval-encoder |train-encoder |embed-corpus "
        r"|\b(DATA|DIR|PAIRS|TEXT)\b|nli-cad|mini-copy|m\.a\.npy|text/es\.txt|halves/|corpora/es\.txt"
    ),
    "trains for minutes, and finds nothing in less": r"adit bootstrap |--encoder second",
    "is a check that CI runs itself": r"make |bash \.ci/run",
}

# These train for minutes as they are shown, and are run for as many steps as say that they work.
SHORTER = {
    "adit train": (
        "--steps 2 --evaluate-every 2 --batch-size 16 --held-out 20 --vocabulary-size 400"
    ),
    "adit map": "--dim 16 --epochs 1 --ngram-rows 1000 --vocabulary-size 400 --min-count 1",
}


def name_of(page: Path) -> str:
    """Return a page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def commands(page: Path) -> Iterator[str]:
    """Yield the command lines of a page: indented lines that begin with one of ``PROGRAMS``."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^    (?:\$ )?(\S.*)$", text, flags=re.MULTILINE):
        bare = re.sub(r"^([A-Z_]+=\S* )+", "", line)
        if bare.partition(" ")[0] in PROGRAMS and not re.match(r"[\w-]+( \w+)?: error:", bare):
            yield re.sub(r" {2,}", " ", bare)


def why_not_run(line: str) -> str | None:
    """Return why a command is not run, or None if it is."""
    return next((why for why, pattern in NOT_RUN.items() if re.search(pattern, line)), None)


def is_shortened(line: str) -> bool:
    """Return whether a command is run with fewer steps than it is shown with."""
    return line.startswith(tuple(SHORTER))


def main() -> None:
    """Print how many commands the pages show, and what becomes of them."""
    lines = [line for page in PAGES for line in commands(page)]
    run = [line for line in lines if why_not_run(line) is None]
    shorter = sum(map(is_shortened, run))
    counts = Counter(filter(None, map(why_not_run, lines)))
    first = f"commands in {len(PAGES)} pages: {len(lines)}; run: {len(run)}, {shorter} shortened"
    rest = [f"  not run: {count:4} {why}" for why, count in counts.most_common()]
    sys.stdout.write("\n".join([first, *rest]) + "\n")


if __name__ == "__main__":
    main()
