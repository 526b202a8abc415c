//! The transport of a track: the `Transport` header of SETUP (RFC 2326 section 12.39), its channels
//! and addresses.

use std::net::{IpAddr, SocketAddr};

use crate::participant::Channel;

/// Which way media goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// From the server.
    Play,
    /// To the server.
    Record,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// RTP and RTCP at these ports of the client.
    Udp { rtp_port: u16, rtcp_port: u16 },
    /// Both on the RTSP connection, on this channel and the next.
    Interleaved { channel: u8 },
}

impl Wanted {
    /// The header's value; `profile` is that of the media section.
    pub(super) fn header(self, profile: &str, mode: Mode) -> String {
        // Without quotes, as GStreamer and ffmpeg write it; PLAY is the default (RFC 2326 section
        // 12.39).
        let mode = if mode == Mode::Record { ";mode=record" } else { "" };
        match self {
            Self::Udp { rtp_port, rtcp_port } => {
                format!("{profile};unicast;client_port={rtp_port}-{rtcp_port}{mode}")
            }
            Self::Interleaved { channel } => {
                let rtcp = channel.saturating_add(1);
                format!("{profile}/TCP;unicast;interleaved={channel}-{rtcp}{mode}")
            }
        }
    }
}

/// What the server granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) is_interleaved: bool,
    /// Channels of RTP and RTCP.
    pub(super) channels: Option<(u8, u8)>,
    /// The server's ports of RTP and RTCP.
    pub(super) server_ports: Option<(u16, u16)>,
    /// The address that media comes from, if it is not that of the RTSP connection.
    pub(super) source: Option<IpAddr>,
    pub(super) is_multicast: bool,
}

impl Granted {
    /// Reads the first transport of the header's value. Unknown parameters are ignored.
    pub(super) fn read(value: &str) -> Self {
        let first = value.split(',').next().unwrap_or_default();
        let mut parts = first.split(';').map(str::trim);
        let is_interleaved =
            parts.next().is_some_and(|spec| spec.to_ascii_uppercase().ends_with("/TCP"));
        let mut granted = Self { is_interleaved, ..Self::default() };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name.to_ascii_lowercase().as_str() {
                "interleaved" => granted.channels = pair(value, |a: u8| a.checked_add(1)),
                "server_port" => granted.server_ports = pair(value, |a: u16| a.checked_add(1)),
                "source" => granted.source = value.trim_matches(['[', ']', '"']).parse().ok(),
                "multicast" => granted.is_multicast = true,
                _ => {}
            }
        }
        granted
    }
}

/// `8000-8001`, or `8000`, where the second is the next number.
fn pair<T: std::str::FromStr + Copy>(value: &str, next: impl Fn(T) -> Option<T>) -> Option<(T, T)> {
    let (first, second) = value.split_once('-').unwrap_or((value, ""));
    let first = first.trim().parse().ok()?;
    Some((first, second.trim().parse().ok().or_else(|| next(first))?))
}

/// A track and its transport.
#[derive(Clone, Default)]
pub(super) struct Track {
    /// Its `a=control`.
    pub(super) control: Option<String>,
    /// RTP profile.
    pub(super) profile: String,
    /// Local ports of RTP and RTCP, over UDP.
    pub(super) ports: Option<(u16, u16)>,
    pub(super) granted: Granted,
    /// The server's ends, where it named its ports.
    pub(super) peers: Option<(SocketAddr, SocketAddr)>,
    /// The first of them that may not be sent to; none is sent to then.
    pub(super) refused: Option<SocketAddr>,
}

/// The channel of a track's RTP; the next one is that of its RTCP.
pub(super) fn rtp_channel(at: usize) -> Channel {
    Channel(u16::try_from(2 * at + 1).unwrap_or(u16::MAX))
}

/// The channel of a track's RTCP.
pub(super) fn rtcp_channel(at: usize) -> Channel {
    Channel(rtp_channel(at).0.saturating_add(1))
}

pub(super) fn name_of(is_interleaved: bool) -> &'static str {
    if is_interleaved { "TCP" } else { "UDP" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_has_the_profile_of_the_section_and_the_mode() {
        let udp = Wanted::Udp { rtp_port: 50_000, rtcp_port: 50_001 };
        assert_eq!(udp.header("RTP/AVP", Mode::Play), "RTP/AVP;unicast;client_port=50000-50001");
        let record = "RTP/AVP;unicast;client_port=50000-50001;mode=record";
        assert_eq!(udp.header("RTP/AVP", Mode::Record), record);
        let tcp = Wanted::Interleaved { channel: 2 };
        assert_eq!(tcp.header("RTP/AVPF", Mode::Play), "RTP/AVPF/TCP;unicast;interleaved=2-3");
        let record = "RTP/AVP/TCP;unicast;interleaved=2-3;mode=record";
        assert_eq!(tcp.header("RTP/AVP", Mode::Record), record);
    }

    #[test]
    fn answers_of_servers_are_read() {
        let gst = "RTP/AVP;unicast;client_port=50000-50001;server_port=40000-40001;ssrc=6A3B;mode=\"PLAY\"";
        let live555 = "RTP/AVP;unicast;destination=127.0.0.1;source=127.0.0.2;client_port=5-6;server_port=6970-6971";
        let one_port = "RTP/AVP/UDP;unicast;server_port=7000";
        let tcp = "RTP/AVP/TCP;unicast;interleaved=0-1, RTP/AVP;unicast";
        let multicast = "RTP/AVP;multicast;destination=232.1.1.1;port=5000-5001";
        let read = Granted::read;
        assert_eq!(read(gst).server_ports, Some((40_000, 40_001)));
        assert_eq!(read(live555).source, Some("127.0.0.2".parse().unwrap()));
        assert_eq!(read(one_port).server_ports, Some((7_000, 7_001)));
        assert!(read(tcp).is_interleaved && read(tcp).channels == Some((0, 1)));
        assert!(read(multicast).is_multicast);
        for rubbish in
            ["", ";;;=", "interleaved=", "RTP/AVP;server_port=99999-2", "RTP/AVP;interleaved=255"]
        {
            let read = read(rubbish);
            assert!(read.channels.is_none() && read.server_ports.is_none(), "{rubbish}");
        }
    }
}
