//! go2rtc (Go): RTSP over TCP, WHEP and HLS of one stream.

use std::net::Ipv4Addr;

use super::{Feed, Launch, RealServer, Sound, json, sum_of, write};
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "go2rtc";
/// RTSP.
pub const RTSP_PORT: u16 = 8554;
/// API, WHEP (`/api/webrtc?src=live`) and HLS (`/api/stream.m3u8?src=live`).
pub const API_PORT: u16 = 1984;

/// Starts it with an empty stream `live`: it takes only what its configuration names.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    let folder = tempfile::tempdir()?;
    let configuration = format!(
        "api: {{ listen: \":{API_PORT}\" }}\nrtsp: {{ listen: \":{RTSP_PORT}\" }}\n\
         webrtc: {{ listen: \":8555\", candidates: [\"{address}:8555\"], ice_servers: [] }}\n\
         srtp: {{ listen: \"\" }}\nstreams:\n  live:\n"
    );
    write(folder.path(), "go2rtc.yaml", &configuration)?;
    let launch = Launch {
        program: PROGRAM,
        arguments: &["-config", "@WORK@/go2rtc.yaml"],
        ports: &[API_PORT, RTSP_PORT],
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
