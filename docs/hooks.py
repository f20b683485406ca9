"""Hooks that make one site of docs/ and of linked files of the repository.

Links in pages lead to files of the repository. If such a file is on the site, its link is changed
to lead there. A line ``<!-- help: NAME -->`` becomes the help of ``adit NAME``.
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
# Paths on the site of pages outside docs/, by their paths in the repository.
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
COPIED = ("deploy/*.yaml", "docker/*.Dockerfile", "examples/*.py", "LICENSE", "CITATION.cff")
LINK = re.compile(r"(\]\()([^)#\s]+)")
HELP = re.compile(r"^<!-- help: ([\w-]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and files from outside docs/."""
    paths = (path for pattern in COPIED for path in sorted(ROOT.glob(pattern)))
    uris = {str(ROOT / path): uri for path, uri in PAGES.items()}
    uris |= {str(path): f"files/{path.relative_to(ROOT).as_posix()}" for path in paths}
    for path, uri in uris.items():
        files.append(File.generated(config, uri, abs_src_path=path))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Change links to files that are on the site, and insert commands' help."""
    uri = page.file.src_uri
    path = next((path for path, site in PAGES.items() if site == uri), f"docs/{uri}")
    markdown = LINK.sub(lambda match: match[1] + _link_on_site(match[2], path, uri), markdown)
    return HELP.sub(lambda match: _help(match[1]), markdown)


def _link_on_site(target: str, path: str, uri: str) -> str:
    """Return a link of the file ``path`` as a link of the site's page ``uri``."""
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if "://" in target or target.startswith("mailto:"):
        return target
    if file.startswith("docs/"):
        site_path = file.removeprefix("docs/")
    elif file in PAGES:
        site_path = PAGES[file]
    elif (ROOT / file).is_file():
        site_path = f"files/{file}"
    else:
        return target
    return posixpath.relpath(site_path, posixpath.dirname(uri) or ".")


def _help(name: str) -> str:
    """Return the output of ``adit NAME --help`` as a block of code."""
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        adit([name, "--help"])
    return f"```text\n{printed.getvalue().rstrip()}\n```"
