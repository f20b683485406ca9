"""Commands that evaluate encoders, score pairs, and read finished runs."""
