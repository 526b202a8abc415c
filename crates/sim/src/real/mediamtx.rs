//! MediaMTX (Go): RTSP, WHEP, WHIP and HLS of one stream, publishers by RTMP, SRT and
//! RTSP.

use std::net::Ipv4Addr;
use std::path::Path;

use super::{Feed, Launch, RealServer, Sound, write};
use crate::http::metric_sum;
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "mediamtx";
/// RTSP.
pub const RTSP_PORT: u16 = 8554;
/// RTSP inside TLS.
pub const RTSPS_PORT: u16 = 8322;
/// RTMP: `/PATH`.
pub const RTMP_PORT: u16 = 1935;
/// SRT: `?streamid=publish:PATH`.
pub const SRT_PORT: u16 = 8890;
/// WHEP and WHIP: `/PATH/whep`, `/PATH/whip`.
pub const WEBRTC_PORT: u16 = 8889;
/// HLS: `/PATH/index.m3u8`.
pub const HLS_PORT: u16 = 8888;
/// Metrics.
pub const METRICS_PORT: u16 = 9998;
/// The certificate of an encrypted one, in its folder.
pub const CERTIFICATE: &str = "cert.pem";

/// Whether RTSP goes through TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// Never.
    #[default]
    No,
    /// On a port of its own (`rtspEncryption: optional`).
    Optional,
    /// Always (`rtspEncryption: strict`).
    Strict,
}

/// What tests configure.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// By a certificate of its own for its address: [`CERTIFICATE`].
    pub encryption: Encryption,
    /// The most readers of a stream (`maxReaders`); 0 is any number.
    pub readers_max: u32,
    /// The packets that may wait for a reader (`writeQueueSize`), a power of two.
    pub write_queue_packets: u32,
    /// The form of HLS (`hlsVariant`): `lowLatency`, `fmp4`, `mpegts`.
    pub hls_variant: &'static str,
}

/// As without a word of it in the configuration; the form of HLS is the usual one.
impl Default for Options {
    fn default() -> Self {
        Self {
            encryption: Encryption::default(),
            readers_max: 0,
            write_queue_packets: 512,
            hls_variant: "lowLatency",
        }
    }
}

/// Starts it.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    start_with(namespace, address, Options::default())
}

/// Starts it with these options.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start_with(
    namespace: &Namespace,
    address: Ipv4Addr,
    options: Options,
) -> Result<RealServer<'_>, SimError> {
    let Options { encryption, readers_max, write_queue_packets, hls_variant } = options;
    let folder = tempfile::tempdir()?;
    let (encrypted, rtsp_ports) = match encryption {
        Encryption::No => ("", vec![RTSP_PORT]),
        Encryption::Optional => ("rtspEncryption: optional\n", vec![RTSP_PORT, RTSPS_PORT]),
        Encryption::Strict => ("rtspEncryption: strict\n", vec![RTSPS_PORT]),
    };
    if encryption != Encryption::No {
        certify(folder.path(), address)?;
    }
    let configuration = format!(
        "logLevel: info\nmoq: no\nwriteQueueSize: {write_queue_packets}\n\
         authInternalUsers:\n- user: any\n  permissions: \
         [{{ action: publish }}, {{ action: read }}, {{ action: metrics }}]\n\
         metrics: yes\nmetricsAddress: :{METRICS_PORT}\n\
         rtspTransports: [udp, tcp]\nrtspAddress: :{RTSP_PORT}\n{encrypted}\
         rtspsAddress: :{RTSPS_PORT}\nrtspServerKey: @WORK@/key.pem\n\
         rtspServerCert: @WORK@/{CERTIFICATE}\n\
         rtmpAddress: :{RTMP_PORT}\nsrtAddress: :{SRT_PORT}\n\
         hlsAddress: :{HLS_PORT}\nhlsVariant: {hls_variant}\n\
         webrtcAddress: :{WEBRTC_PORT}\nwebrtcIPsFromInterfaces: no\n\
         webrtcAdditionalHosts: [{address}]\n\
         paths:\n  all_others:\n    maxReaders: {readers_max}\n"
    );
    write(folder.path(), "mediamtx.yml", &configuration)?;
    let ports = [vec![METRICS_PORT, RTMP_PORT, HLS_PORT, WEBRTC_PORT], rtsp_ports].concat();
    let launch = Launch { program: PROGRAM, arguments: &["@WORK@/mediamtx.yml"], ports: &ports };
    RealServer::start(namespace, address, folder, &launch)
}

/// Makes a certificate that signs itself.
fn certify(folder: &Path, address: Ipv4Addr) -> Result<(), SimError> {
    let certified = rcgen::generate_simple_self_signed([address.to_string()])
        .map_err(|error| SimError::Said(error.to_string()))?;
    std::fs::write(folder.join(CERTIFICATE), certified.cert.pem())?;
    Ok(std::fs::write(folder.join("key.pem"), certified.signing_key.serialize_pem())?)
}

/// Publishes `live`, H.264 and Opus, by RTSP.
///
/// # Errors
/// As [`Feed::start`].
pub fn feed(server: &RealServer<'_>) -> Result<Feed, SimError> {
    let url = format!("rtsp://{}:{RTSP_PORT}/live", server.address());
    Feed::start(server, Sound::Opus, "rtsp -rtsp_transport tcp", &url, has_a_stream)
}

/// Publishes `live`, H.264 and AAC, by RTMP, which is not encrypted.
///
/// # Errors
/// As [`Feed::start`].
pub fn feed_by_rtmp(server: &RealServer<'_>) -> Result<Feed, SimError> {
    let url = format!("rtmp://{}:{RTMP_PORT}/live", server.address());
    Feed::start(server, Sound::Aac, "flv", &url, has_a_stream)
}

fn has_a_stream(server: &RealServer<'_>) -> bool {
    metric(server, "paths").is_ok_and(|paths| paths >= 1.0)
}

/// The sum of a metric over all its labels.
///
/// # Errors
/// When it does not answer.
pub fn metric(server: &RealServer<'_>, name: &str) -> Result<f64, SimError> {
    Ok(metric_sum(&server.get(METRICS_PORT, "/metrics", "")?, name, ""))
}

/// Bytes of a stream that it has received; 0 before it is published.
///
/// # Errors
/// When it does not answer.
pub fn received_bytes(server: &RealServer<'_>, stream: &str) -> Result<f64, SimError> {
    let metrics = server.get(METRICS_PORT, "/metrics", "")?;
    Ok(metric_sum(&metrics, "paths_inbound_bytes", &format!("name=\"{stream}\"")))
}
