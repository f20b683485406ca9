"""Property tests of arrays: the first example loads torch, so no single one has a deadline."""

from hypothesis import settings

settings.register_profile("arrays", deadline=None, print_blob=True)
settings.load_profile("arrays")
