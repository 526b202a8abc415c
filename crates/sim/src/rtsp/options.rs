//! What a [`GstRtspServer`](super::GstRtspServer) allows and demands, as `gst_server.py` reads it.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::{Value, json};

use super::MediaFile;
use crate::support::SimError;

/// UDP ports of media: below those that Linux gives to clients, above those of the other test
/// servers on loopback.
const MEDIA_PORTS: [u16; 2] = [21_000, 31_999];
const FILES: [(&str, MediaFile); 9] = [
    ("/h264", MediaFile::H264),
    ("/h264-b", MediaFile::H264BFrames),
    ("/mpeg2", MediaFile::Mpeg2),
    ("/ts", MediaFile::Mpeg2),
    ("/h265", MediaFile::H265),
    ("/mpeg4", MediaFile::Mpeg4),
    ("/mjpeg", MediaFile::Mjpeg),
    ("/pcma", MediaFile::Pcma),
    ("/mp3", MediaFile::Mp3),
];

/// How a client authenticates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginMethod {
    /// RFC 7617.
    Basic,
    /// RFC 2617, MD5.
    Digest,
}

/// The login that the mounts require.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The method.
    pub method: LoginMethod,
    /// The user.
    pub user: String,
    /// The user's password.
    pub password: String,
}

/// What the server allows and demands. The default demands nothing and allows both transports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The login that every request needs.
    pub login: Option<Login>,
    /// TLS only (`rtsps`), with a certificate of its own.
    pub tls: bool,
    /// Whether media may go by UDP.
    pub udp: bool,
    /// Whether media may be interleaved in the RTSP connection.
    pub tcp: bool,
    /// The timeout of sessions, as the `Session` header announces it; a session ends up to 6 s
    /// later.
    pub session_timeout_s: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { login: None, tls: false, udp: true, tcp: true, session_timeout_s: 60 }
    }
}

/// Writes `settings.json` into the server's folder, with a certificate if TLS is asked for.
pub(super) fn configure(
    folder: &Path,
    address: Ipv4Addr,
    port: u16,
    options: &Options,
) -> Result<(), SimError> {
    let mut files = serde_json::Map::new();
    for (mount, file) in FILES {
        files.insert(mount.into(), json!(file.path()?));
    }
    let tls = if options.tls { Some(certificate(folder, address)?) } else { None };
    let transports = [("udp", options.udp), ("tcp", options.tcp)];
    let transports: Vec<&str> =
        transports.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    let login = options.login.as_ref().map(|login| {
        let method = match login.method {
            LoginMethod::Basic => "basic",
            LoginMethod::Digest => "digest",
        };
        json!({ "method": method, "user": login.user, "password": login.password })
    });
    let settings = json!({
        "address": address, "port": port, "media_ports": MEDIA_PORTS, "files": files,
        "transports": transports, "login": login, "tls": tls, "recordings": folder,
        "session_timeout_s": options.session_timeout_s,
    });
    Ok(fs::write(folder.join("settings.json"), settings.to_string())?)
}

fn certificate(folder: &Path, address: Ipv4Addr) -> Result<Value, SimError> {
    let certified = rcgen::generate_simple_self_signed(["localhost".into(), address.to_string()])
        .map_err(|error| SimError::Said(error.to_string()))?;
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    fs::write(&certificate, certified.cert.pem())?;
    fs::write(&key, certified.signing_key.serialize_pem())?;
    Ok(json!({ "certificate": certificate, "key": key }))
}
