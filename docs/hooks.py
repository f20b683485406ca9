"""Makes one site of the pages in docs/ and of what they link to elsewhere in the repository.

Pages link to files as a reader of the repository would. Where such a file is a page of the site,
too, or a file that the site carries along, its link is changed to lead there. A line
``<!-- help: NAME -->`` becomes the help of ``adit NAME``.
"""

import contextlib
import io
import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from pipelines.cli.main import adit

ROOT = Path(__file__).parents[1]
# Pages that lie elsewhere in the repository: their place on the site, by their place there.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "encoder/assets/mini/README.md": "cards/mini.md",
    "encoder/assets/mini/more/README.md": "cards/more.md",
    "encoder/assets/use/more/README.md": "cards/use.md",
    "encoders/wide/README.md": "cards/wide.md",
}
SHOWN = ("deploy/*.yaml", "docker/*.Dockerfile", "examples/*.py", "LICENSE", "CITATION.cff")
LINK = re.compile(r"(\]\()([^)#\s]+)")
HELP = re.compile(r"^<!-- help: ([\w-]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files that lie outside of docs/."""
    found = (path for pattern in SHOWN for path in sorted(ROOT.glob(pattern)))
    places = {str(ROOT / place): uri for place, uri in PAGES.items()}
    places |= {str(path): f"files/{path.relative_to(ROOT).as_posix()}" for path in found}
    for place, uri in places.items():
        files.append(File.generated(config, uri, abs_src_path=place))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where the site has their files, and put in the help of commands."""
    uri = page.file.src_uri
    place = next((place for place, site in PAGES.items() if site == uri), f"docs/{uri}")
    markdown = LINK.sub(lambda found: found[1] + _on_site(found[2], place, uri), markdown)
    return HELP.sub(lambda found: _help(found[1]), markdown)


def _on_site(target: str, place: str, uri: str) -> str:
    """Return a link of the file at ``place``, for the page of the site at ``uri``."""
    file = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
    if "://" in target or target.startswith("mailto:"):
        return target
    if file.startswith("docs/"):
        home = file.removeprefix("docs/")
    elif file in PAGES:
        home = PAGES[file]
    elif (ROOT / file).is_file():
        home = f"files/{file}"
    else:
        return target
    return posixpath.relpath(home, posixpath.dirname(uri) or ".")


def _help(name: str) -> str:
    """Return what ``adit NAME --help`` prints, as a block of code."""
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        adit([name, "--help"])
    return f"```text\n{printed.getvalue().rstrip()}\n```"
