"""The setup file that Beam's ``--setup_file`` sends to workers.

All settings are in pyproject.toml.
"""

from setuptools import setup

setup()
