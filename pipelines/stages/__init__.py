"""Stages of a run, which are functions of its context and a reference.

A stage saves its result as an artefact in the work folder (``miner.storage.artefacts``), or uses
the artefact of an earlier run with equal inputs. It returns references to it. The errors of
``produce`` are raised: ArtefactError for a damaged artefact, OSError for a full disk.
"""
