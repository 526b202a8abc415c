//! The command against real servers: Janus, Chromium, links of known delay and loss, and servers
//! that misbehave.
//!
//! `.config/nextest.toml` says which of them run in parallel.

mod throng;

mod addresses;
mod bad_servers;
mod browser;
mod canary;
mod capabilities;
mod chat;
mod command_line;
mod compare;
mod conference;
mod consent;
mod cors;
mod cut_off;
mod decode;
mod doctor;
mod export;
mod find;
mod fleet;
mod history;
mod hls;
mod ingest;
mod init;
mod ipc;
mod janus;
mod janus_conference;
mod kubernetes;
mod layers;
mod link;
mod livekit;
mod long_run;
mod matrix;
mod media;
mod media_address;
mod memory_limit;
mod metrics;
mod missing;
mod oven_media_engine;
mod page;
mod peertube;
mod price;
mod profile;
mod prove;
mod proxy;
mod rate;
mod real;
mod relay;
mod remote_watch;
mod requests;
mod rings;
mod rtsp;
mod secrets;
mod serve;
mod stage;
mod stopped;
mod streams;
mod tap;
mod terminal;
mod vod;
mod watch;
mod watch_page;
mod watched_run;
mod whip;
