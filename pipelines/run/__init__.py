"""Run the stages, with their graph, workers, locks and ledger."""
