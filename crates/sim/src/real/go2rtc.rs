//! go2rtc (Go): RTSP over TCP, WHEP and HLS of one stream, publishers by RTSP, WHIP and RTMP.

use std::net::Ipv4Addr;

use super::{Feed, Launch, RealServer, Sound, json, sum_of, write};
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "go2rtc";
/// RTSP.
pub const RTSP_PORT: u16 = 8554;
/// RTMP: `/STREAM`.
pub const RTMP_PORT: u16 = 1935;
/// API, WHEP (`/api/webrtc?src=live`), WHIP (`/api/webrtc?dst=STREAM`) and HLS
/// (`/api/stream.m3u8?src=live`).
pub const API_PORT: u16 = 1984;

/// Its streams that publishers of each protocol may fill.
pub const FOR_PUBLISHERS: [&str; 3] = ["fromrtsp", "fromwhip", "fromrtmp"];

/// Starts it with empty streams, `live` and those of [`FOR_PUBLISHERS`]: it takes only what its
/// configuration names.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    let folder = tempfile::tempdir()?;
    let streams = FOR_PUBLISHERS.map(|name| format!("  {name}:\n")).concat();
    let configuration = format!(
        "api: {{ listen: \":{API_PORT}\" }}\nrtsp: {{ listen: \":{RTSP_PORT}\" }}\n\
         webrtc: {{ listen: \":8555\", candidates: [\"{address}:8555\"], ice_servers: [] }}\n\
         rtmp: {{ listen: \":{RTMP_PORT}\" }}\nsrtp: {{ listen: \"\" }}\n\
         streams:\n  live:\n{streams}"
    );
    write(folder.path(), "go2rtc.yaml", &configuration)?;
    let launch = Launch {
        program: PROGRAM,
        arguments: &["-config", "@WORK@/go2rtc.yaml"],
        ports: &[API_PORT, RTSP_PORT, RTMP_PORT],
    };
    RealServer::start(namespace, address, folder, &launch)
}

/// Publishes `live`, H.264 and Opus, by RTSP.
///
/// # Errors
/// As [`Feed::start`].
pub fn feed(server: &RealServer<'_>) -> Result<Feed, SimError> {
    let url = format!("rtsp://{}:{RTSP_PORT}/live", server.address());
    Feed::start(server, Sound::Opus, "rtsp -rtsp_transport tcp", &url, |server| {
        streams(server).is_ok_and(|all| sum_of(&all, "bytes_recv") > 0.0)
    })
}

fn streams(server: &RealServer<'_>) -> Result<serde_json::Value, SimError> {
    json(&server.get(API_PORT, "/api/streams", "")?)
}

/// Bytes that it has sent to the viewers who are there; those of who has left are gone.
///
/// # Errors
/// When it does not answer.
pub fn sent_bytes(server: &RealServer<'_>) -> Result<f64, SimError> {
    Ok(sum_of(&streams(server)?["live"]["consumers"], "bytes"))
}

/// Bytes of a stream that it has received; 0 before it is published.
///
/// # Errors
/// When it does not answer.
pub fn received_bytes(server: &RealServer<'_>, stream: &str) -> Result<f64, SimError> {
    Ok(sum_of(&streams(server)?[stream]["producers"], "bytes_recv"))
}
