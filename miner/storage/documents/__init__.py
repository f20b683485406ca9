"""Documents such as pages and dumps, and their splitting into sentences."""
