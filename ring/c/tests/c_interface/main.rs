//! The C interface: careless callers, the header, examples built as users build them.

mod border;
mod header;
mod installed;
mod processes;
