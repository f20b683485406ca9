"""The mining graph on Apache Beam, and the command lines that run it."""
