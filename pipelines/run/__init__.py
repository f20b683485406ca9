"""Running the stages: the graph, its workers, locks, and the record of progress."""
