//! Alternative services (RFC 7838) as Chromium uses them: where a response says that its origin
//! speaks HTTP/3, later requests to that origin go there, unless it could not be reached.

use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::{AGE, ALT_SVC};
use throng_observation::Url;
use url::Origin;

/// Lifetime of an alternative without `ma` (section 3.1).
const FRESH: Duration = Duration::from_secs(24 * 3_600);

/// So long an alternative that could not be reached is not tried again: Chromium's first delay
/// (`kBrokenAlternativeProtocolDelaySecs` in net/http/broken_alternative_services.cc).
const BROKEN: Duration = Duration::from_secs(300);

/// From this port on a port is everybody's: one below is not left for one above
/// (`kUnrestrictedPort` in net/http/http_stream_factory_job_controller.cc of Chromium).
const UNRESTRICTED_PORT: u16 = 1_024;

/// Origins that are remembered; of more, the oldest are forgotten.
const ORIGINS_MAX: usize = 16;

/// What the responses of origins said.
#[derive(Debug, Default)]
pub(in crate::player) struct Alternatives {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    origin: Origin,
    /// The port of HTTP/3 on the origin's host, and until when.
    fresh: Option<(u16, Instant)>,
    /// A port that could not be reached, and until when it is not tried.
    broken: Option<(u16, Instant)>,
}

impl Alternatives {
    /// The port at which to try HTTP/3 for `url`.
    pub(in crate::player) fn port(&self, now: Instant, url: &Url) -> Option<u16> {
        let known = self.known.iter().find(|known| known.origin == url.origin())?;
        let (port, _) = known.fresh.filter(|(_, until)| now < *until)?;
        let is_broken = known.broken.is_some_and(|(broken, until)| broken == port && now < until);
        (!is_broken).then_some(port)
    }

    /// Reads the head of a response from `url`. Only an authenticated one may name alternatives
    /// (section 2.1).
    pub(in crate::player) fn learn(&mut self, now: Instant, url: &Url, headers: &HeaderMap) {
        if url.scheme() != "https" || !headers.contains_key(ALT_SVC) {
            return;
        }
        let text: Vec<_> =
            headers.get_all(ALT_SVC).iter().filter_map(|value| value.to_str().ok()).collect();
        let own_port = url.port_or_known_default().unwrap_or(443);
        let may_use = |port: u16| port < UNRESTRICTED_PORT || own_port >= UNRESTRICTED_PORT;
        let offers = text
            .iter()
            .flat_map(|text| elements(text, ','))
            .filter_map(|element| offer(element, url));
        let offered = offers.into_iter().find(|(port, _)| may_use(*port));
        // What a response says replaces all that was said before; `clear`, and others than HTTP/3,
        // leave nothing.
        let age_s =
            headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse().ok()).unwrap_or(0);
        let fresh = offered.and_then(|(port, lifetime)| {
            let left = lifetime.saturating_sub(Duration::from_secs(age_s));
            (!left.is_zero()).then(|| (port, now + left))
        });
        self.of(url).fresh = fresh;
    }

    /// The alternative of `url`'s origin could not be reached; its port, where that is news.
    pub(in crate::player) fn broke(&mut self, now: Instant, url: &Url) -> Option<u16> {
        let port = self.port(now, url)?;
        self.of(url).broken = Some((port, now + BROKEN));
        Some(port)
    }

    /// The alternative is not responsible for `url`'s origin (421, section 6).
    pub(in crate::player) fn forget(&mut self, url: &Url) {
        self.known.retain(|known| known.origin != url.origin());
    }

    fn of(&mut self, url: &Url) -> &mut Known {
        let origin = url.origin();
        let at = self.known.iter().position(|known| known.origin == origin).unwrap_or_else(|| {
            if self.known.len() >= ORIGINS_MAX {
                self.known.remove(0);
            }
            self.known.push(Known { origin, fresh: None, broken: None });
            self.known.len() - 1
        });
        &mut self.known[at]
    }
}

/// Port and lifetime of an element such as `h3=":443"; ma=3600`, if it is HTTP/3 on the host of
/// `url`.
fn offer(element: &str, url: &Url) -> Option<(u16, Duration)> {
    let mut parts = elements(element, ';');
    let (protocol, authority) = parts.next()?.split_once('=')?;
    if protocol.trim() != "h3" {
        return None;
    }
    let (host, port) = unquoted(authority).rsplit_once(':')?;
    // Another host would be another target, which nobody has consented for.
    if !host.is_empty() && !url.host_str().is_some_and(|own| own.eq_ignore_ascii_case(host)) {
        return None;
    }
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let lifetime_s = parts.filter_map(|part| part.split_once('=')).find_map(|(name, value)| {
        name.trim()
            .eq_ignore_ascii_case("ma")
            .then(|| unquoted(value).parse::<u32>().ok())
            .flatten()
    });
    Some((port, lifetime_s.map_or(FRESH, |seconds| Duration::from_secs(seconds.into()))))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// The elements of a list, split outside of quoted strings (RFC 9110 section 5.6.4).
fn elements(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c: char| {
        is_quoted ^= c == '"' && !is_escaped;
        is_escaped = is_quoted && c == '\\' && !is_escaped;
        c == separator && !is_quoted
    })
    .map(str::trim)
    .filter(|element| !element.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(
        alternatives: &mut Alternatives,
        now: Instant,
        url: &str,
        headers: &[(&'static str, &str)],
    ) -> Option<u16> {
        let url = Url::parse(url).unwrap();
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        alternatives.learn(now, &url, &headers.collect::<HeaderMap>());
        alternatives.port(now, &url)
    }

    #[test]
    fn http3_on_the_same_host_is_an_alternative_and_nothing_else() {
        let now = Instant::now();
        for (url, value, expect) in [
            ("https://a.example/x", r#"h3=":443"; ma=2592000"#, Some(443)),
            ("https://a.example/x", r#"h3-29=":443", h3=":8443,;=\"; ma=1, h3=":444""#, None),
            ("https://a.example/x", r#"h2=":443", h3=":444"; persist=1"#, Some(444)),
            ("https://a.example/x", r#"h3="A.EXAMPLE:443""#, Some(443)),
            ("https://a.example/x", r#"h3="b.example:443""#, None),
            ("https://a.example/x", r#"h3="b.example:443", h3=":444""#, Some(444)),
            ("https://a.example/x", r#"h3=":8443""#, None),
            ("https://a.example:9443/x", r#"h3=":8443""#, Some(8443)),
            ("https://[::1]:9443/x", r#"h3="[::1]:8443""#, Some(8443)),
            ("https://a.example/x", r#"h3=":0""#, None),
            ("https://a.example/x", r#"h3=":443"; ma=0"#, None),
            ("https://a.example/x", r#"h3=":65536""#, None),
            ("https://a.example/x", "clear", None),
            ("https://a.example/x", "h3", None),
            ("http://a.example/x", r#"h3=":443""#, None),
        ] {
            let of = learnt(&mut Alternatives::default(), now, url, &[("alt-svc", value)]);
            assert_eq!(of, expect, "{url} {value}");
        }
    }

    #[test]
    fn an_alternative_ages_is_replaced_cleared_and_left_alone_while_broken() {
        let (now, url) = (Instant::now(), Url::parse("https://a.example/x").unwrap());
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut all = Alternatives::default();
        let offer = ("alt-svc", r#"h3=":443"; ma=60"#);
        assert_eq!(
            learnt(&mut all, now, url.in_clear().as_str(), &[offer, ("age", "20")]),
            Some(443)
        );
        assert_eq!((all.port(after(39), &url), all.port(after(40), &url)), (Some(443), None));
        assert_eq!(
            all.port(now, &Url::parse("https://a.example:444/x").unwrap()),
            None,
            "another origin"
        );
        learnt(&mut all, now, url.in_clear().as_str(), &[]);
        assert_eq!(all.port(now, &url), Some(443), "silence takes nothing back");
        learnt(&mut all, now, url.in_clear().as_str(), &[("alt-svc", "clear")]);
        assert_eq!(all.port(now, &url), None);

        let lasting = [("alt-svc", r#"h3=":443""#)];
        learnt(&mut all, now, url.in_clear().as_str(), &lasting);
        assert_eq!((all.broke(now, &url), all.broke(now, &url)), (Some(443), None), "told once");
        assert_eq!(
            learnt(&mut all, after(1), url.in_clear().as_str(), &lasting),
            None,
            "said again, still broken"
        );
        assert_eq!((all.port(after(299), &url), all.port(after(300), &url)), (None, Some(443)));
        all.forget(&url);
        assert_eq!(all.port(after(300), &url), None);
    }
}
