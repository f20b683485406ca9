"""Extras of the distribution, by the modules that they install."""

from importlib.util import find_spec

DISTRIBUTION = "bitext-adit"

# The imported modules of each extra; pyproject.toml lists the packages.
_MODULES = {
    "beam": "apache_beam",
    "documents": "chardetng_py lxml mwparserfromhell trafilatura warcio webencodings",
    "duplicates": "rensa",
    "evaluate": "sklearn",
    "faiss": "faiss",
    "laser": "MeCab ipadic jieba regex sacremoses transliterate",
    "plot": "matplotlib",
    "repair": "ftfy",
    "st": "huggingface_hub sentence_transformers",
    "torch": "torch",
}
EXTRAS = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return how to install an error's missing module, or None if in no extra."""
    module = (error.name or "").partition(".")[0]
    if (extra := EXTRAS.get(module)) is None:
        return None
    or_gpu = f" (on NVIDIA GPUs: '{DISTRIBUTION}[gpu]')" if extra == "faiss" else ""
    return f"{module} is not installed; run: pip install '{DISTRIBUTION}[{extra}]'{or_gpu}"


def require(module: str) -> None:
    """Check that a module is installed, without importing it.

    Raises:
        ModuleNotFoundError: The module is not installed.
    """
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
