//! Where a stream is published, from its URL.

use std::net::{IpAddr, SocketAddr};

use throng_observation::{Failure, FailureReason};
use url::Url;

use super::session::Place;

/// The protocol of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IngestProtocol {
    /// RTMP, over TLS for `https:` URLs.
    Rtmp,
    /// SRT.
    Srt,
}

/// What is published where, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URL with `http:` for `rtmp:` and `srt:`, `https:` for `rtmps:`, as the scenario keeps
    /// it.
    pub url: Url,
    /// The protocol.
    pub protocol: IngestProtocol,
    /// FFmpeg encodes the picture again, with a clock in it.
    pub burns_clock: bool,
}

impl Config {
    /// Whether an FFmpeg process publishes.
    pub(super) fn needs_ffmpeg(&self) -> bool {
        self.burns_clock || self.protocol == IngestProtocol::Srt
    }

    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(0)
    }

    /// The address of an FFmpeg process's peer, which FFmpeg must not resolve by itself: its answer
    /// could be another than the one that was allowed. `known` is the address that throng resolved.
    pub(super) fn address(
        &self,
        known: Option<SocketAddr>,
        may_reach: &dyn Fn(IpAddr) -> bool,
    ) -> Result<SocketAddr, Failure> {
        let literal = self.host().trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let ip = literal.or(known.map(|known| known.ip())).ok_or_else(|| {
            Failure::new(FailureReason::Dns, format!("the address of {} is not known", self.host()))
        })?;
        if may_reach(ip) {
            Ok(SocketAddr::new(ip, self.port()))
        } else {
            let detail = format!("{ip} is not an allowed target");
            Err(Failure::new(FailureReason::NotAllowed, detail))
        }
    }

    /// The URL for FFmpeg.
    pub(super) fn at(&self, address: SocketAddr) -> String {
        let scheme = match (self.protocol, self.is_tls()) {
            (IngestProtocol::Srt, _) => "srt",
            (IngestProtocol::Rtmp, false) => "rtmp",
            (IngestProtocol::Rtmp, true) => "rtmps",
        };
        let path = self.url.path().trim_end_matches('/');
        let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{scheme}://{address}{path}{query}")
    }

    /// Application and key for RTMP.
    pub(super) fn place(&self) -> Place {
        let scheme = if self.is_tls() { "rtmps" } else { "rtmp" };
        let path = self.url.path().trim_start_matches('/');
        let (app, key) = path.rsplit_once('/').unwrap_or((path, ""));
        let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        Place {
            connection_url: format!("{scheme}://{}:{}/{app}", self.host(), self.port()),
            app: app.to_owned(),
            key: format!("{key}{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, protocol: IngestProtocol) -> Config {
        Config { url: Url::parse(url).unwrap(), protocol, burns_clock: false }
    }

    #[test]
    fn application_and_key_are_the_parts_of_the_path() {
        for (url, connection, app, key) in [
            ("http://h:1935/live/abc", "rtmp://h:1935/live", "live", "abc"),
            ("http://h:1935/a/b/k?x=1&y", "rtmp://h:1935/a/b", "a/b", "k?x=1&y"),
            ("https://h/live/k", "rtmps://h:443/live", "live", "k"),
        ] {
            let place = config(url, IngestProtocol::Rtmp).place();
            assert_eq!((&*place.connection_url, &*place.app, &*place.key), (connection, app, key));
        }
    }

    #[test]
    fn ffmpeg_is_given_an_address_that_is_allowed_and_no_name() {
        let known: SocketAddr = "10.1.2.3:1".parse().unwrap();
        let srt = config("http://media.example:9000/?streamid=a", IngestProtocol::Srt);
        let address = srt.address(Some(known), &|_| true).unwrap();
        assert_eq!(srt.at(address), "srt://10.1.2.3:9000?streamid=a");
        assert_eq!(srt.address(None, &|_| true).unwrap_err().reason, FailureReason::Dns);
        assert_eq!(
            srt.address(Some(known), &|_| false).unwrap_err().reason,
            FailureReason::NotAllowed
        );
        let rtmp = config("http://[::1]:1935/live/k", IngestProtocol::Rtmp);
        assert_eq!(rtmp.at(rtmp.address(None, &|_| true).unwrap()), "rtmp://[::1]:1935/live/k");
    }
}
