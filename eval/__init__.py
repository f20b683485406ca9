"""Evaluation of encoders and runs. The package's name hides a builtin."""
