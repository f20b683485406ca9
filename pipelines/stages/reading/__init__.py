"""Stages that read corpora, detect languages and split documents."""
