//! Where a stream is published, from its URL.

use std::net::{IpAddr, SocketAddr};

use throng_observation::{Failure, FailureReason, Url};
use throng_scenario::IpProtocol;

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
    /// The address that an FFmpeg process gets, where the host has several.
    pub chosen: Option<IpAddr>,
}

impl Config {
    /// Whether an FFmpeg process publishes.
    pub(crate) fn needs_ffmpeg(&self) -> bool {
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
        may_reach: &dyn Fn(IpProtocol, SocketAddr) -> bool,
    ) -> Result<SocketAddr, Failure> {
        let literal = self.host().trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let ip = literal.or(self.chosen).or(known.map(|known| known.ip())).ok_or_else(|| {
            Failure::new(FailureReason::Dns, format!("the address of {} is not known", self.host()))
        })?;
        let to = SocketAddr::new(ip, self.port());
        let protocol = match self.protocol {
            IngestProtocol::Rtmp => IpProtocol::Tcp,
            IngestProtocol::Srt => IpProtocol::Udp,
        };
        if may_reach(protocol, to) {
            Ok(to)
        } else {
            let detail = format!("{to} is not an allowed target");
            Err(Failure::new(FailureReason::NotAllowed, detail))
        }
    }

    /// The URL for FFmpeg, without what [`Self::options`] has.
    pub(super) fn at(&self, address: SocketAddr) -> String {
        match (self.protocol, self.is_tls()) {
            (IngestProtocol::Srt, _) => {
                let query = self.url.in_clear().query().unwrap_or_default();
                let open: Vec<&str> = query.split('&').filter(is_open).collect();
                let query = open.join("&");
                let query = if query.is_empty() { query } else { format!("?{query}") };
                format!("srt://{address}{query}")
            }
            (IngestProtocol::Rtmp, false) => format!("rtmp://{address}"),
            (IngestProtocol::Rtmp, true) => format!("rtmps://{address}"),
        }
    }

    /// Options of FFmpeg for what is secret, and for what it would not decode in a URL.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        if self.protocol == IngestProtocol::Rtmp {
            let Place { app, key, .. } = self.place();
            let options = [("rtmp_app", app), ("rtmp_playpath", key)];
            return options.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        }
        // In a stream id a `+` is one.
        let query = self.url.in_clear().query().unwrap_or_default().replace('+', "%2B");
        let value = |name: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let options = SRT_OPTIONS.iter().filter_map(|(name, option)| Some((*option, value(name)?)));
        options.filter(|(_, value)| !value.is_empty()).collect()
    }

    /// Application and key for RTMP. A path of one part is the application, as in FFmpeg: servers
    /// without applications (MediaMTX) join the two.
    pub(super) fn place(&self) -> Place {
        let scheme = if self.is_tls() { "rtmps" } else { "rtmp" };
        let path = self.url.in_clear().path().trim_matches('/');
        let query =
            self.url.in_clear().query().map(|query| format!("?{query}")).unwrap_or_default();
        let (app, key) = match path.rsplit_once('/') {
            Some((app, key)) => (app.to_owned(), format!("{key}{query}")),
            None => (format!("{path}{query}"), String::new()),
        };
        Place {
            connection_url: format!("{scheme}://{}:{}/{app}", self.host(), self.port()),
            app,
            key,
        }
    }
}

/// Parameters of an SRT URL that are secret, and whose values may have characters that are escaped
/// in a URL, with the options of FFmpeg for them. Its `streamid` is another one.
const SRT_OPTIONS: [(&str, &str); 2] = [("streamid", "srt_streamid"), ("passphrase", "passphrase")];

/// Whether a parameter of an SRT URL may be among the arguments of FFmpeg: its own are lower case
/// words with numbers and words as values, and what may be a secret of somebody else's is none.
fn is_open(pair: &&str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_known = SRT_PARAMETERS.contains(&name);
    is_known && value.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// The parameters that FFmpeg 5.1 reads in the URL of a caller, without the secret ones (libsrt.c).
const SRT_PARAMETERS: &[&str] = &[
    "connect_timeout",
    "enforced_encryption",
    "ffs",
    "inputbw",
    "iptos",
    "ipttl",
    "kmpreannounce",
    "kmrefreshrate",
    "latency",
    "linger",
    "lossmaxttl",
    "maxbw",
    "messageapi",
    "minversion",
    "mode",
    "mss",
    "nakreport",
    "oheadbw",
    "payload_size",
    "pbkeylen",
    "peerlatency",
    "pkt_size",
    "rcvbuf",
    "rcvlatency",
    "recv_buffer_size",
    "send_buffer_size",
    "smoother",
    "sndbuf",
    "snddropdelay",
    "timeout",
    "tlpktdrop",
    "transtype",
    "tsbpd",
    "tsbpddelay",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, protocol: IngestProtocol) -> Config {
        Config { url: Url::parse(url).unwrap(), protocol, burns_clock: false, chosen: None }
    }

    #[test]
    fn application_and_key_are_the_parts_of_the_path() {
        for (url, connection, app, key) in [
            ("http://h:1935/live/abc", "rtmp://h:1935/live", "live", "abc"),
            ("http://h:1935/a/b/k?x=1&y", "rtmp://h:1935/a/b", "a/b", "k?x=1&y"),
            ("https://h/live/k", "rtmps://h:443/live", "live", "k"),
            ("http://h:1935/stream", "rtmp://h:1935/stream", "stream", ""),
            ("http://h:1935/stream?user=a", "rtmp://h:1935/stream?user=a", "stream?user=a", ""),
        ] {
            let place = config(url, IngestProtocol::Rtmp).place();
            assert_eq!((&*place.connection_url, &*place.app, &*place.key), (connection, app, key));
        }
    }

    #[test]
    fn ffmpeg_is_given_an_address_that_is_allowed_and_no_name() {
        let known: SocketAddr = "10.1.2.3:1".parse().unwrap();
        let srt = config(
            "http://media.example:9000/?streamid=%23!::h=live/x%26y+z,m=publish&latency=2000&passphrase=a%20b&t=S3CRET",
            IngestProtocol::Srt,
        );
        let address = srt.address(Some(known), &|_, _| true).unwrap();
        assert_eq!(srt.at(address), "srt://10.1.2.3:9000?latency=2000");
        assert_eq!(
            srt.options(),
            [
                ("srt_streamid", "#!::h=live/x&y+z,m=publish".to_owned()),
                ("passphrase", "a b".to_owned())
            ]
        );
        let plain = config("http://media.example:9000/", IngestProtocol::Srt);
        assert_eq!((plain.at(address).as_str(), plain.options().len()), ("srt://10.1.2.3:9000", 0));
        assert_eq!(srt.address(None, &|_, _| true).unwrap_err().reason, FailureReason::Dns);
        assert_eq!(
            srt.address(Some(known), &|_, _| false).unwrap_err().reason,
            FailureReason::NotAllowed
        );
        let rtmp = config("http://[::1]:1935/live/k?t=1", IngestProtocol::Rtmp);
        assert_eq!(rtmp.at(rtmp.address(None, &|_, _| true).unwrap()), "rtmp://[::1]:1935");
        let parts = [("rtmp_app", "live".to_owned()), ("rtmp_playpath", "k?t=1".to_owned())];
        assert_eq!(rtmp.options(), parts);
    }
}
