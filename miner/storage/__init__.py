"""What mining reads and writes, in modules that load soon: pyarrow waits for its first use."""
