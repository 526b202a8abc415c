//! Socket code shared by load generator, watcher and stage: many datagrams per system call,
//! wake-ups between threads, loading of memory into the CPU's caches, and checks of TLS
//! certificates. Contains their unsafe code.

mod datagrams;
pub use datagrams::{
    DATAGRAM_BYTES_MAX, Outgoing, RECEIVE_BATCH, ReceiveBatch, Received, SEND_BATCH,
    choose_port_at_connect, force_receive_buffer, receive_arrivals_and_drops, receive_locals, send,
};

pub mod packet_ring;

mod prefetch;
pub use prefetch::prefetch;

mod sockopt;

mod segments;
pub use segments::{SendBatch, Sent};

mod waker;
pub use waker::{Waker, wait};

mod tcp_info;
pub use tcp_info::{TcpInfo, tcp_info};

pub mod tls;
