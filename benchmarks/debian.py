"""Fetch the translated messages, help and dictionaries of Debian packages.

python benchmarks/debian.py ROOT

Of Debian 13, main: every package with message catalogues in five or more of the languages that most
lack text, and those with texts in other forms that ``catalogues.py`` and ``dictionaries.py`` read.
3.5 GB come over the network, and 4.5 GB of texts are below ROOT in the end. Needs curl, tar and
dpkg-deb. Given again, the command goes on with the packages that are missing.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

MIRROR = "http://deb.debian.org/debian/"
SUITE = f"{MIRROR}dists/trixie/main/"
LACKING = frozenset("ar bn bn_IN et eu fa fi he hi hu hy is ka kk ko lt lv sw ta th ur vi".split())
LEAST = 5  # catalogues of these
OTHERS = re.compile(
    r"dict-freedict-(eng-\w+|\w+-eng)|(firefox-esr|libreoffice|thunderbird)-l10n-.+|iso-codes|"
    r"libhangul-data|libreoffice-help-.+|mediawiki|wesnoth-1\.18-.+"
)
BUT = frozenset({"enlightenment-data"})  # 400 MB of pictures, and few messages
TEXTS = "*.mo", "*/i18n/*.json", "*.xpi", "*/libreoffice/help/*.html", "*/dictd/*", "*/hanja.txt"
CATALOGUE = re.compile(r"\S*/([^/]+)/LC_MESSAGES/\S+\.mo\s+(\S+)")
CURL = "curl", "-sSf", "--retry", "3"
DONE = ".fetched"  # a file for each package, in the folder


def main() -> None:
    """Choose, fetch and unpack packages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path, help="folder to unpack into")
    root = parser.parse_args().root
    (root / DONE).mkdir(parents=True, exist_ok=True)
    contents = (
        line
        for name in ("all", "amd64")
        for line in gzip.decompress(fetched(f"{SUITE}Contents-{name}.gz")).decode().split("\n")
    )
    index = lzma.decompress(fetched(f"{SUITE}binary-amd64/Packages.xz")).decode()
    places = chosen(
        contents, dict(re.findall(r"^Package: (.*)\n(?:.+\n)*?Filename: (.*)", index, re.M))
    )
    with ThreadPoolExecutor(8) as threads:
        for _ in threads.map(partial(unpack, root), places):
            pass


def chosen(contents: Iterable[str], places: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the packages to fetch, with their paths on the mirror.

    ``contents`` are lines of files and their packages, and ``places`` are the paths of all
    packages.
    """
    catalogues = Counter(
        package.rpartition("/")[2]
        for match in filter(None, map(CATALOGUE.match, contents))
        for package in match[2].split(",")
        if match[1].partition("@")[0] in LACKING
    )
    for package, place in sorted(places.items()):
        if package not in BUT and (catalogues[package] >= LEAST or OTHERS.fullmatch(package)):
            yield package, place


def unpack(root: Path, package: tuple[str, str]) -> None:
    """Fetch a package unless it exists, and unpack its texts."""
    name, place = package
    if (root / DONE / name).exists():
        return
    with tempfile.NamedTemporaryFile(suffix=".deb") as file:
        subprocess.run([*CURL, "-o", file.name, MIRROR + place], check=True)
        command = ["tar", "-x", "-C", str(root), "--wildcards", *TEXTS]
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", file.name], stdout=subprocess.PIPE
        ) as archive:  # tar says that some of the patterns are of no file
            subprocess.run(command, stdin=archive.stdout, stderr=subprocess.DEVNULL, check=False)
    (root / DONE / name).touch()


def fetched(address: str) -> bytes:
    """Download an address."""
    return subprocess.run([*CURL, address], check=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
