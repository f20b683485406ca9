"""Stages of a run, plain functions from references to sealed artefacts."""
