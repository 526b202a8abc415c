//! Readers of the simple files that coded media is kept in: Annex-B byte streams, IVF, Ogg. Bytes in, borrowed frames
//! out; one format, one file.

pub mod annexb;
pub mod ivf;
pub mod ogg;
