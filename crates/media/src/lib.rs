//! RTP, RTCP, codec headers, in-media marks and quality meters. Input: bytes and times; output:
//! figures; no I/O.

mod octets;

pub mod prefetch;

pub mod rtp;

pub mod rtcp;

pub mod codec;

pub mod mark;

pub mod picture_clock;

pub mod quality;

pub mod container;

pub mod timing;

pub mod manifest;

pub mod packetise;

pub mod depacketise;

pub mod assemble;

pub mod source;

pub mod card;
