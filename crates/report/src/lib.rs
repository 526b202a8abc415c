//! A run's summary, tables and the self-contained page.
