//! OvenMediaEngine 0.20 (C++): its WebRTC signalling, its relay, LL-HLS and HLS of a stream that
//! comes by RTMP or SRT.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Feed, Launch, RealServer, Sound, WORK, json, sum_of, write};
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "OvenMediaEngine";
/// RTMP.
pub const RTMP_PORT: u16 = 1935;
/// SRT: `?streamid=default/app/live`.
pub const SRT_PORT: u16 = 9999;
/// WebRTC signalling, LL-HLS (`/app/live/llhls.m3u8`) and HLS (`/app/live/ts:playlist.m3u8`).
pub const PORT: u16 = 3333;
/// REST API.
pub const API_PORT: u16 = 8081;
/// The API's access token.
pub const TOKEN: &str = "ome-access-token";

const SERVER: &str = include_str!("oven_media_engine.xml");
const LOGGER: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Logger version=\"2\">\
    <Path>@WORK@</Path><Tag name=\".*\" level=\"info\" /></Logger>\n";

/// Starts it with two applications: `app`, whose sound is AAC and Opus, and `browsers`, which
/// passes on what comes by WHIP as it is. This build encodes no AAC.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), "Server.xml", SERVER)?;
    write(folder.path(), "Logger.xml", LOGGER)?;
    let launch =
        Launch { program: PROGRAM, arguments: &["-c", WORK], ports: &[RTMP_PORT, PORT, API_PORT] };
    RealServer::start(namespace, address, folder, &launch)
}

/// Publishes `live` of `app`, H.264 and AAC, by RTMP; viewers by WebRTC get Opus.
///
/// # Errors
/// As [`Feed::start`].
pub fn feed(server: &RealServer<'_>) -> Result<Feed, SimError> {
    let url = format!("rtmp://{}:{RTMP_PORT}/app/live", server.address());
    Feed::start(server, Sound::Aac, "flv", &url, |server| {
        ask(server, "/v1/vhosts/default/apps/app/streams")
            .is_ok_and(|answer| answer["response"].as_array().is_some_and(|all| !all.is_empty()))
    })
}

fn ask(server: &RealServer<'_>, path: &str) -> Result<serde_json::Value, SimError> {
    let token = STANDARD.encode(TOKEN);
    json(&server.get(API_PORT, path, &format!("Authorization: Basic {token}\r\n"))?)
}

/// Bytes that `app` has sent.
///
/// # Errors
/// When it does not answer.
pub fn sent_bytes(server: &RealServer<'_>) -> Result<f64, SimError> {
    let answer = ask(server, "/v1/stats/current/vhosts/default/apps/app")?;
    Ok(sum_of(&answer["response"], "totalBytesOut"))
}

/// Bytes of a stream (`APPLICATION/streams/STREAM`) that it has received.
///
/// # Errors
/// When it does not answer, or does not have the stream.
pub fn received_bytes(server: &RealServer<'_>, stream: &str) -> Result<f64, SimError> {
    let path = format!("/v1/stats/current/vhosts/default/apps/{stream}");
    Ok(sum_of(&ask(server, &path)?["response"], "totalBytesIn"))
}
