"""The parts of the exact search: codes, candidates, compiled loops, rescoring."""
