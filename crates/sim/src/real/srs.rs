//! SRS 7 (C++): WHEP, WHIP, HLS and MPEG-DASH of a stream that comes by RTMP or SRT.

use std::net::Ipv4Addr;

use super::{Feed, Launch, RealServer, Sound, json, sum_of, write};
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "srs";
/// RTMP.
pub const RTMP_PORT: u16 = 1935;
/// SRT: `?streamid=%23!::r=live/cam,m=publish`.
pub const SRT_PORT: u16 = 10080;
/// API, WHEP (`/rtc/v1/whep/?app=live&stream=cam`) and WHIP (`/rtc/v1/whip/`).
pub const API_PORT: u16 = 1985;
/// HLS: `/live/cam.m3u8`.
pub const HTTP_PORT: u16 = 8080;
/// Metrics.
pub const METRICS_PORT: u16 = 9972;

/// Starts it.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    start_with(namespace, address, Options::default())
}

/// What tests configure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most TCP connections (`max_connections`): publishers by RTMP, and HTTP.
    pub connections_max: u32,
    /// Above how much of a core, in per cent, its thread spares itself work (`circuit_breaker`).
    pub spares_above_percent: u32,
    /// It writes MPEG-DASH too (`dash`): `/live/cam.mpd`.
    pub has_dash: bool,
}

/// As without a word of it in the configuration.
impl Default for Options {
    fn default() -> Self {
        Self { connections_max: 1000, spares_above_percent: 90, has_dash: false }
    }
}

/// Starts it with these options.
///
/// # Errors
/// As [`start`].
pub fn start_with(
    namespace: &Namespace,
    address: Ipv4Addr,
    options: Options,
) -> Result<RealServer<'_>, SimError> {
    let Options { connections_max, spares_above_percent, has_dash } = options;
    let dash = if has_dash {
        "dash { enabled on; dash_path @WORK@/html; dash_fragment 1; dash_update_period 1; \
         dash_timeshift 20; }\n"
    } else {
        ""
    };
    let folder = tempfile::tempdir()?;
    let configuration = format!(
        "listen {RTMP_PORT};\nmax_connections {connections_max};\n\
         daemon off;\nsrs_log_tank console;\n\
         circuit_breaker {{ enabled on; high_threshold {spares_above_percent}; high_pulse 1; }}\n\
         pid @WORK@/srs.pid;\nquery_latest_version off;\nstats {{ network 0; }}\n\
         exporter {{ enabled on; listen {METRICS_PORT}; }}\n\
         http_api {{ enabled on; listen {API_PORT}; }}\n\
         http_server {{ enabled on; listen {HTTP_PORT}; dir @WORK@/html; }}\n\
         srt_server {{ enabled on; listen {SRT_PORT}; }}\n\
         rtc_server {{ enabled on; listen 8000; candidate {address}; }}\n\
         vhost __defaultVhost__ {{\n\
         rtc {{ enabled on; rtmp_to_rtc on; rtc_to_rtmp on; keep_bframe off; }}\n\
         srt {{ enabled on; srt_to_rtmp on; }}\n\
         hls {{ enabled on; hls_path @WORK@/html; hls_fragment 1; hls_window 8; }}\n{dash}\
         play {{ mw_latency 0; mw_msgs 0; gop_cache on; }}\n\
         min_latency on; tcp_nodelay on;\n}}\n"
    );
    write(folder.path(), "srs.conf", &configuration)?;
    std::fs::create_dir(folder.path().join("html"))?;
    let launch = Launch {
        program: PROGRAM,
        arguments: &["-c", "@WORK@/srs.conf"],
        ports: &[RTMP_PORT, API_PORT, HTTP_PORT],
    };
    RealServer::start(namespace, address, folder, &launch)
}

/// Publishes `cam` of `live`, H.264 and AAC, by RTMP; viewers by WebRTC get Opus.
///
/// # Errors
/// As [`Feed::start`].
pub fn feed(server: &RealServer<'_>) -> Result<Feed, SimError> {
    let url = format!("rtmp://{}:{RTMP_PORT}/live/cam", server.address());
    Feed::start(server, Sound::Aac, "flv", &url, |server| {
        streams(server).is_ok_and(|all| sum_of(&all, "recv_bytes") > 0.0)
    })
}

fn streams(server: &RealServer<'_>) -> Result<serde_json::Value, SimError> {
    json(&server.get(API_PORT, "/api/v1/streams/", "")?)
}

/// Bytes of a stream that it has received; 0 before it is published.
///
/// # Errors
/// When it does not answer.
pub fn received_bytes(server: &RealServer<'_>, stream: &str) -> Result<f64, SimError> {
    let all = streams(server)?;
    let of_name = all["streams"].as_array().into_iter().flatten();
    let of_name = of_name.filter(|one| one["name"].as_str() == Some(stream));
    Ok(of_name.map(|one| sum_of(one, "recv_bytes")).sum())
}
