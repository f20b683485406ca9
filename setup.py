"""What Beam's ``--setup_file`` sends to workers; everything is declared in pyproject.toml."""

from setuptools import setup

setup()
