"""Training of encoders, from parallel text to a folder."""
