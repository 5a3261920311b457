"""What happened in a run, without I/O: events, the ledger of running runs, kinds of evidence."""
