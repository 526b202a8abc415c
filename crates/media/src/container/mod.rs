//! Readers of files with coded media: Annex-B byte streams, IVF, Ogg, and recorded RTP (Janus
//! `.mjr`, pcap); and Matroska, which is also written. Bytes in, borrowed frames out; one format,
//! one file.

pub mod adts;
pub mod annexb;
pub mod ivf;
pub mod matroska;
pub mod mjr;
pub mod ogg;
pub mod pcap;
