//! The cookies of one viewer (RFC 6265bis, draft-ietf-httpbis-rfc6265bis), kept and sent back as
//! Chromium does.

use std::cmp::Reverse;

use cookie::{Cookie, SameSite};
use http::HeaderMap;
use http::header::{HeaderValue, SET_COOKIE};
use throng_observation::Url;
use url::Host;

/// Longest name and value together, and longest attribute value (section 5.6).
const PAIR_LEN_MAX: usize = 4_096;
const ATTRIBUTE_LEN_MAX: usize = 1_024;

/// Most cookies of a registrable domain; of more, the oldest are forgotten.
const COOKIES_OF_SITE_MAX: usize = 180;

/// Most cookies in all.
const COOKIES_MAX: usize = 540;

/// Longest life of a cookie (section 5.5), seconds.
const LIFE_S_MAX: i64 = 400 * 86_400;

/// The cookies of a viewer.
#[derive(Debug, Default)]
pub(in crate::player) struct CookieJar {
    /// In the order of their creation.
    cookies: Vec<Stored>,
}

#[derive(Debug)]
struct Stored {
    name: String,
    value: String,
    /// Lower case, without a leading dot.
    domain: String,
    is_host_only: bool,
    path: String,
    is_secure: bool,
    /// Sent across sites too (`SameSite=None`).
    is_for_all_sites: bool,
    /// Seconds since 1970; `None`: while the viewer stays.
    expires_s: Option<i64>,
}

impl CookieJar {
    /// Keeps what a response from `url` sets.
    pub(in crate::player) fn store(
        &mut self,
        unix_s: i64,
        url: &Url,
        headers: &HeaderMap,
        is_cross_site: bool,
    ) {
        for value in headers.get_all(SET_COOKIE) {
            let Ok(text) = std::str::from_utf8(value.as_bytes()) else { continue };
            if let Some(cookie) = Stored::read(unix_s, url, text, is_cross_site) {
                self.insert(unix_s, url, cookie);
            }
        }
    }

    fn insert(&mut self, unix_s: i64, url: &Url, cookie: Stored) {
        self.expire(unix_s);
        // What was set over TLS is not replaced by what anybody on the way could have set.
        if !cookie.is_secure
            && !is_trustworthy(url)
            && self.cookies.iter().any(|old| old.shields(&cookie))
        {
            return;
        }
        let is_same = |old: &Stored| {
            (&old.name, &old.domain, old.is_host_only, &old.path)
                == (&cookie.name, &cookie.domain, cookie.is_host_only, &cookie.path)
        };
        let at = self.cookies.iter().position(is_same);
        if cookie.expires_s.is_some_and(|expires_s| expires_s <= unix_s) {
            if let Some(at) = at {
                self.cookies.remove(at);
            }
            return;
        }
        if let Some(old) = at.and_then(|at| self.cookies.get_mut(at)) {
            *old = cookie;
            return;
        }
        let site = registrable(&cookie.domain).to_owned();
        let of_site = |old: &Stored| registrable(&old.domain) == site;
        if self.cookies.iter().filter(|old| of_site(old)).count() >= COOKIES_OF_SITE_MAX
            && let Some(oldest) = self.cookies.iter().position(of_site)
        {
            self.cookies.remove(oldest);
        }
        if self.cookies.len() >= COOKIES_MAX {
            self.cookies.remove(0);
        }
        self.cookies.push(cookie);
    }

    fn expire(&mut self, unix_s: i64) {
        self.cookies.retain(|cookie| cookie.expires_s.is_none_or(|expires_s| expires_s > unix_s));
    }

    /// The value of `Cookie` of a request to `url`; `None` if there is none.
    pub(in crate::player) fn header(
        &mut self,
        unix_s: i64,
        url: &Url,
        is_cross_site: bool,
    ) -> Option<String> {
        self.expire(unix_s);
        let mut sent: Vec<&Stored> =
            self.cookies.iter().filter(|cookie| cookie.is_for(url, is_cross_site)).collect();
        // Longer paths first; a stable sort leaves the others in the order of their creation.
        sent.sort_by_key(|cookie| Reverse(cookie.path.len()));
        let pairs: Vec<_> =
            sent.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

impl Stored {
    /// The cookie that a response from `url` sets, unless it may not.
    fn read(unix_s: i64, url: &Url, text: &str, is_cross_site: bool) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return None;
        }
        let cookie = Cookie::parse(text).ok()?;
        if cookie.name().len() + cookie.value().len() > PAIR_LEN_MAX {
            return None;
        }
        let is_short = |value: &&str| value.len() <= ATTRIBUTE_LEN_MAX;
        let (domain, is_host_only) = domain(url, cookie.domain().filter(is_short))?;
        let path = cookie.path().filter(is_short).filter(|path| path.starts_with('/'));
        let is_secure = cookie.secure() == Some(true);
        let is_for_all_sites = cookie.same_site() == Some(SameSite::None);
        let has_prefix = |prefix: &str| {
            cookie
                .name()
                .get(..prefix.len())
                .is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
        };
        let is_refused = (is_secure && !is_trustworthy(url))
            || (is_for_all_sites && !is_secure)
            || (is_cross_site && !is_for_all_sites)
            || (has_prefix("__Secure-") && !is_secure)
            || (has_prefix("__Host-") && !(is_secure && is_host_only && path == Some("/")));
        if is_refused {
            return None;
        }
        let life_s = match (cookie.max_age(), cookie.expires_datetime()) {
            (Some(age), _) => Some(age.whole_seconds()),
            (None, Some(at)) => Some(at.unix_timestamp().saturating_sub(unix_s)),
            (None, None) => None,
        };
        Some(Self {
            name: cookie.name().to_owned(),
            value: cookie.value().to_owned(),
            domain,
            is_host_only,
            path: path.map_or_else(|| default_path(url), str::to_owned),
            is_secure,
            is_for_all_sites,
            expires_s: life_s.map(|life_s| unix_s.saturating_add(life_s.min(LIFE_S_MAX))),
        })
    }

    /// Whether it is sent with a request to `url`.
    fn is_for(&self, url: &Url, is_cross_site: bool) -> bool {
        let is_host = match url.host_str() {
            Some(host) if self.is_host_only => host == self.domain,
            Some(host) => is_within(host, &self.domain),
            None => false,
        };
        is_host
            && is_path_within(url.in_clear().path(), &self.path)
            && (!self.is_secure || is_trustworthy(url))
            && (!is_cross_site || self.is_for_all_sites)
    }

    /// Whether it was set over TLS, and would be hidden by `other`, which was not (section 5.7).
    fn shields(&self, other: &Self) -> bool {
        self.is_secure
            && self.name == other.name
            && (is_within(&self.domain, &other.domain) || is_within(&other.domain, &self.domain))
            && is_path_within(&other.path, &self.path)
    }
}

/// The domain of a cookie, and whether it is for this host only; `None` if the host may not set it.
fn domain(url: &Url, attribute: Option<&str>) -> Option<(String, bool)> {
    let host = url.host_str()?;
    let Some(domain) = attribute.filter(|domain| !domain.is_empty()) else {
        return Some((host.to_owned(), true));
    };
    let domain = domain.to_ascii_lowercase();
    let is_name = matches!(url.host(), Some(Host::Domain(_)));
    if domain == host {
        // A name below which anybody can register is for itself only; an address has nothing below.
        return Some((domain, !is_name || psl::domain_str(host).is_none()));
    }
    let may_be_shared = is_name && is_within(host, &domain) && psl::domain_str(&domain).is_some();
    may_be_shared.then_some((domain, false))
}

/// Whether `host` is `domain`, or below it.
fn is_within(host: &str, domain: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|above| above.ends_with('.'))
}

/// Section 5.1.4.
fn is_path_within(path: &str, of: &str) -> bool {
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || of.ends_with('/') || rest.starts_with('/'))
}

/// The path up to its last slash (section 5.1.4).
fn default_path(url: &Url) -> String {
    let path = url.in_clear().path();
    match path.rfind('/') {
        None | Some(0) => "/".to_owned(),
        Some(at) => path.get(..at).unwrap_or("/").to_owned(),
    }
}

/// Whether `Secure` cookies may pass: over TLS, and to the own host.
fn is_trustworthy(url: &Url) -> bool {
    url.scheme() == "https" || super::encoding::is_local(url)
}

/// The domain that somebody has registered.
fn registrable(host: &str) -> &str {
    if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') {
        return host;
    }
    psl::domain_str(host).unwrap_or(host)
}

/// Whether a request from a page at `page` to `url` crosses sites: another scheme, or another
/// registrable domain.
pub(in crate::player) fn is_cross_site(page: &Url, url: &Url) -> bool {
    page.scheme() != url.scheme()
        || page.host_str().map(registrable) != url.host_str().map(registrable)
}

/// For the mutation tests: the value of `Cookie` of a request to `to` after a response of `from`
/// has set these.
#[doc(hidden)]
#[must_use]
pub fn cookies_after<'a>(
    set: impl Iterator<Item = &'a [u8]>,
    from: &Url,
    to: &Url,
) -> Option<String> {
    let mut headers = HeaderMap::new();
    for value in set.filter_map(|line| HeaderValue::from_bytes(line).ok()) {
        headers.append(SET_COOKIE, value);
    }
    let mut jar = CookieJar::default();
    jar.store(1_700_000_000, from, &headers, false);
    jar.header(1_700_000_000, to, is_cross_site(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_700_000_000;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn set(jar: &mut CookieJar, from: &str, cookie: &str, is_cross_site: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(SET_COOKIE, HeaderValue::from_str(cookie).unwrap());
        jar.store(NOW_S, &url(from), &headers, is_cross_site);
    }

    /// What is sent to `to` after `from` has set `cookie`.
    fn sent(from: &str, cookie: &str, to: &str) -> Option<String> {
        let mut jar = CookieJar::default();
        set(&mut jar, from, cookie, false);
        jar.header(NOW_S, &url(to), false)
    }

    #[test]
    fn a_cookie_goes_where_its_domain_path_and_security_allow() {
        for (from, cookie, to, expect) in [
            ("http://a.example.com/", "k=v", "http://a.example.com/x", true),
            ("http://a.example.com/", "k=v", "https://a.example.com:8443/x", true),
            ("http://a.example.com/", "k=v", "http://b.a.example.com/", false),
            ("http://a.example.com/", "k=v; Domain=a.example.com", "http://b.a.example.com/", true),
            ("http://a.example.com/", "k=v; Domain=.EXAMPLE.com", "http://b.example.com/", true),
            ("http://a.example.com/", "k=v; Domain=example.com", "http://notexample.com/", false),
            ("http://a.example.com/", "k=v; Domain=b.example.com", "http://b.example.com/", false),
            ("http://a.example.com/", "k=v; Domain=com", "http://a.example.com/", false),
            ("http://a.co.uk/", "k=v; Domain=co.uk", "http://a.co.uk/", false),
            ("http://10.0.0.1/", "k=v; Domain=10.0.0.1", "http://10.0.0.1:99/", true),
            ("http://10.0.0.1/", "k=v; Domain=0.0.1", "http://10.0.0.1/", false),
            ("http://a.example/live/x/i.m3u8", "k=v", "http://a.example/live/x/1.ts", true),
            ("http://a.example/live/x/i.m3u8", "k=v", "http://a.example/live/xy/1.ts", false),
            ("http://a.example/live/i.m3u8", "k=v; Path=/", "http://a.example/key", true),
            ("http://a.example/", "k=v; Path=/live", "http://a.example/live", true),
            ("http://a.example/", "k=v; Path=/live", "http://a.example/liver", false),
            ("https://a.example/", "k=v; Secure", "https://a.example/", true),
            ("https://a.example/", "k=v; Secure", "http://a.example/", false),
            ("http://a.example/", "k=v; Secure", "https://a.example/", false),
            ("http://127.0.0.1/", "k=v; Secure", "http://127.0.0.1/", true),
            ("https://a.example/", "__Host-k=v; Secure; Path=/", "https://a.example/", true),
            ("https://a.example/", "__Host-k=v; Secure", "https://a.example/", false),
            ("https://a.example/", "__secure-k=v", "https://a.example/", false),
            ("https://a.example/", "k=v; SameSite=None", "https://a.example/", false),
        ] {
            let result = sent(from, cookie, to);
            assert_eq!(result.is_some(), expect, "{from} {cookie} {to}: {result:?}");
        }
    }

    #[test]
    fn a_cookie_lives_as_long_as_it_says_and_is_removed_by_one_that_has_expired() {
        for (cookie, after_s, expect) in [
            ("k=v", 500 * 86_400, true),
            ("k=v; Max-Age=60", 59, true),
            ("k=v; Max-Age=60", 60, false),
            ("k=v; Max-Age=0", 0, false),
            ("k=v; Max-Age=-5", 0, false),
            ("k=v; Max-Age=999999999999", 399 * 86_400, true),
            ("k=v; Max-Age=999999999999", 400 * 86_400, false),
            // 1 700 000 000 is Tue, 14 Nov 2023 22:13:20.
            ("k=v; Expires=Tue, 14 Nov 2023 22:13:30 GMT", 9, true),
            ("k=v; Expires=Tue, 14 Nov 2023 22:13:30 GMT", 10, false),
            ("k=v; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60", 1, true),
        ] {
            let (mut jar, at) = (CookieJar::default(), "http://a.example/");
            set(&mut jar, at, "k=old", false);
            set(&mut jar, at, cookie, false);
            let result = jar.header(NOW_S + after_s, &url(at), false);
            assert_eq!(result.as_deref(), expect.then_some("k=v"), "{cookie} after {after_s} s");
        }
    }

    #[test]
    fn longer_paths_come_first_then_older_cookies() {
        let mut jar = CookieJar::default();
        for cookie in ["a=1; Path=/", "b=2; Path=/live", "c=3; Path=/live", "a=4; Path=/"] {
            set(&mut jar, "http://a.example/live/x", cookie, false);
        }
        let header = jar.header(NOW_S, &url("http://a.example/live/1.ts"), false);
        assert_eq!(header.as_deref(), Some("b=2; c=3; a=4"));
    }

    #[test]
    fn across_sites_only_cookies_for_all_sites_are_kept_and_sent() {
        const AT: &str = "https://cdn.example/";
        for (cookie, expect) in [
            ("k=v", None),
            ("k=v; SameSite=Lax", None),
            ("k=v; SameSite=Strict", None),
            ("k=v; SameSite=None; Secure", Some("k=v")),
        ] {
            let mut jar = CookieJar::default();
            set(&mut jar, AT, cookie, false);
            assert_eq!(jar.header(NOW_S, &url(AT), true).as_deref(), expect, "{cookie}");
            assert_eq!(jar.header(NOW_S, &url(AT), false).as_deref(), Some("k=v"), "{cookie}");
            let mut jar = CookieJar::default();
            set(&mut jar, AT, cookie, true);
            assert_eq!(jar.header(NOW_S, &url(AT), false).as_deref(), expect, "{cookie}");
        }
        for (page, other, expect) in [
            ("https://www.example.com/", "https://cdn.example.com:8443/", false),
            ("https://a.co.uk/", "https://b.co.uk/", true),
            ("http://www.example.com/", "https://www.example.com/", true),
            ("http://127.0.0.1:1/", "http://127.0.0.1:2/", false),
            ("http://10.0.0.1/", "http://11.0.0.1/", true),
            ("http://[::1]:1/", "http://[::1]:2/", false),
        ] {
            assert_eq!(is_cross_site(&url(page), &url(other)), expect, "{page} {other}");
        }
    }

    #[test]
    fn what_is_set_without_tls_does_not_hide_a_secure_cookie() {
        let mut jar = CookieJar::default();
        set(
            &mut jar,
            "https://a.example.com/",
            "k=safe; Secure; Domain=example.com; Path=/",
            false,
        );
        set(&mut jar, "http://a.example.com/live/", "k=forged", false);
        set(&mut jar, "http://a.example.com/live/", "other=1", false);
        let header = jar.header(NOW_S, &url("https://a.example.com/live/1.ts"), false);
        assert_eq!(header.as_deref(), Some("other=1; k=safe"));
    }

    #[test]
    fn a_server_cannot_fill_the_jar() {
        let mut jar = CookieJar::default();
        for site in 0..10 {
            for number in 0..400 {
                set(
                    &mut jar,
                    &format!("http://www.site-{site}.example/"),
                    &format!("k{number}=1; Path=/"),
                    false,
                );
            }
        }
        assert_eq!(jar.cookies.len(), COOKIES_MAX);
        let header = jar.header(NOW_S, &url("http://www.site-9.example/"), false).unwrap();
        assert_eq!(header.split("; ").count(), COOKIES_OF_SITE_MAX);
        assert!(header.ends_with("k399=1"));
        let mut jar = CookieJar::default();
        for cookie in [&format!("k={}", "v".repeat(4_096)), "", "no pair", "=v"] {
            set(&mut jar, "http://a.example/", cookie, false);
        }
        assert_eq!(jar.header(NOW_S, &url("http://a.example/"), false), None);
    }
}
