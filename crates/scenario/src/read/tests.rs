//! Laws of reading scenarios.
