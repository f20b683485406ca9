"""Input and output of mining, in modules that import pyarrow on first use."""
