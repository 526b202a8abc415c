//! The run folder: run.db and what lies beside it.
