//! MediaMTX (Go): RTSP, WHEP, WHIP and low-latency HLS of one stream.

use std::net::Ipv4Addr;

use super::{Feed, Launch, RealServer, Sound, write};
use crate::http::metric_sum;
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "mediamtx";
/// RTSP.
pub const RTSP_PORT: u16 = 8554;
/// WHEP and WHIP: `/PATH/whep`, `/PATH/whip`.
pub const WEBRTC_PORT: u16 = 8889;
/// HLS: `/PATH/index.m3u8`.
pub const HLS_PORT: u16 = 8888;
/// Metrics.
pub const METRICS_PORT: u16 = 9998;

/// Starts it.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    let folder = tempfile::tempdir()?;
    let configuration = format!(
        "logLevel: info\nmoq: no\nauthInternalUsers:\n- user: any\n  permissions: \
         [{{ action: publish }}, {{ action: read }}, {{ action: metrics }}]\n\
         metrics: yes\nmetricsAddress: :{METRICS_PORT}\n\
         rtspTransports: [udp, tcp]\nrtspAddress: :{RTSP_PORT}\n\
         hlsAddress: :{HLS_PORT}\nhlsVariant: lowLatency\n\
         webrtcAddress: :{WEBRTC_PORT}\nwebrtcIPsFromInterfaces: no\n\
         webrtcAdditionalHosts: [{address}]\npaths:\n  all_others:\n"
    );
    write(folder.path(), "mediamtx.yml", &configuration)?;
    let ports = [METRICS_PORT, RTSP_PORT, HLS_PORT, WEBRTC_PORT];
    let launch = Launch { program: PROGRAM, arguments: &["@WORK@/mediamtx.yml"], ports: &ports };
    RealServer::start(namespace, address, folder, &launch)
}

/// Publishes `live`, H.264 and Opus, by RTSP.
///
/// # Errors
/// As [`Feed::start`].
pub fn feed(server: &RealServer<'_>) -> Result<Feed, SimError> {
    let url = format!("rtsp://{}:{RTSP_PORT}/live", server.address());
    Feed::start(server, Sound::Opus, "rtsp -rtsp_transport tcp", &url, |server| {
        metric(server, "paths").is_ok_and(|paths| paths >= 1.0)
    })
}

/// The sum of a metric over all its labels.
///
/// # Errors
/// When it does not answer.
pub fn metric(server: &RealServer<'_>, name: &str) -> Result<f64, SimError> {
    Ok(metric_sum(&server.get(METRICS_PORT, "/metrics", "")?, name, ""))
}
