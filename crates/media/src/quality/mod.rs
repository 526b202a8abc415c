//! Quality meters: one meter, one file.
