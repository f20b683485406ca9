"""Input and output of mining, in local and remote files."""
