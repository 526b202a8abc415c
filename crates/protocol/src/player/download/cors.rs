//! Requests of a page to other origins as a browser makes them (Fetch standard): what they say of
//! the page, and which responses the page may have.
//!
//! ```text
//! page at https://www.example.com/watch        https://cdn.example
//!   GET /live.m3u8                      ─────▶
//!     Origin: https://www.example.com
//!     Referer: https://www.example.com/
//!                                       ◀─────   200, Access-Control-Allow-Origin:
//!                                                 https://www.example.com, or *
//! ```
//! Headers that a form could not send have a preflight before them (`preflight`).

use http::HeaderMap;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, HeaderName, HeaderValue, ORIGIN,
    REFERER,
};
use throng_observation::Url;
use throng_scenario::CredentialsPolicy;
use url::Host;

use crate::excerpt::excerpt;

/// Where a chain of redirects has been so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::player) struct Origins {
    /// At another origin than the page's: back there, it is as foreign (response tainting "cors").
    has_left: bool,
    /// A redirect led to another origin, where `Authorization` is not for (HTTP-redirect fetch).
    has_crossed: bool,
    /// One foreign origin has redirected to another, which is not told whose page it is: the first
    /// could have meant to attack it (tainted origin).
    is_opaque: bool,
    /// What the redirects have left of the page's URL.
    referrer: Referrer,
}

/// How much of its page a request tells, by the policy `strict-origin-when-cross-origin`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Referrer {
    #[default]
    Full,
    Origin,
    Nothing,
}

/// The page that a player is in.
#[derive(Clone, Debug)]
pub(in crate::player) struct Embedding {
    url: Url,
    requests: RequestMode,
}

/// How the page makes its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestMode {
    /// No page was given: requests do not mention it, and any response will do.
    Unsaid,
    /// By a media element without `crossorigin` ("no-cors"): any response will do.
    Element,
    /// By a script ("cors").
    Script,
}

impl Origins {
    /// Whether a request to `url` is one to another origin than the page's.
    pub(in crate::player) fn is_foreign(self, page: &Embedding, url: &Url) -> bool {
        self.has_left || url.origin() != page.url.origin()
    }

    /// Whether a redirect has led from one origin to another.
    pub(in crate::player) fn has_crossed(self) -> bool {
        self.has_crossed
    }

    /// Whether it is not said whose page it is.
    pub(in crate::player) fn is_opaque(self) -> bool {
        self.is_opaque
    }

    /// These origins after one more redirect.
    pub(in crate::player) fn redirected(self, page: &Embedding, from: &Url, to: &Url) -> Self {
        let crosses = from.origin() != to.origin();
        Self {
            has_left: self.is_foreign(page, from),
            has_crossed: self.has_crossed || crosses,
            is_opaque: self.is_opaque || crosses && from.origin() != page.url.origin(),
            referrer: self.referrer.max(Referrer::of(&page.url, from)),
        }
    }
}

impl Referrer {
    fn of(page: &Url, url: &Url) -> Self {
        if page.origin() == url.origin() {
            Self::Full
        } else if page.scheme() == "https" && url.scheme() != "https" {
            Self::Nothing
        } else {
            Self::Origin
        }
    }
}

impl Embedding {
    /// Some page of the origin of `media`.
    pub(in crate::player) fn unsaid(media: &Url) -> Self {
        Self { url: media.clone(), requests: RequestMode::Unsaid }
    }

    /// The page at `url`, whose requests a script makes, or a media element.
    pub(in crate::player) fn at(url: &Url, by_script: bool) -> Self {
        let requests = if by_script { RequestMode::Script } else { RequestMode::Element };
        Self { url: url.clone(), requests }
    }

    pub(in crate::player) fn url(&self) -> &Url {
        &self.url
    }

    /// Whether a request to `url` would be in clear text although its page is encrypted, or without
    /// a page its playlist (W3C Mixed Content, section 4). Of this machine, which browsers trust
    /// without TLS, nothing is.
    pub(in crate::player) fn is_mixed(&self, url: &Url) -> bool {
        let is_trusted = match url.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            None => false,
        };
        self.url.scheme() == "https" && url.scheme() == "http" && !is_trusted
    }

    /// Whether a request to `url` needs the permission of its server.
    pub(in crate::player) fn needs_permission(&self, url: &Url, before: Origins) -> bool {
        self.requests == RequestMode::Script && before.is_foreign(self, url)
    }

    /// The origin as it is sent.
    fn origin(&self, before: Origins) -> String {
        if before.is_opaque { "null".to_owned() } else { self.url.origin().ascii_serialization() }
    }

    /// Adds what a request to `url` says of the page.
    pub(in crate::player) fn describe(&self, url: &Url, before: Origins, headers: &mut HeaderMap) {
        if self.requests == RequestMode::Unsaid {
            return;
        }
        let mut add = |name: HeaderName, value: String| {
            headers.extend(HeaderValue::try_from(value).ok().map(|value| (name, value)));
        };
        if self.needs_permission(url, before) {
            add(ORIGIN, self.origin(before));
        }
        match before.referrer.max(Referrer::of(&self.url, url)) {
            Referrer::Full => add(REFERER, self.url.in_clear().to_string()),
            Referrer::Origin => {
                add(REFERER, format!("{}/", self.url.origin().ascii_serialization()));
            }
            Referrer::Nothing => {}
        }
    }

    /// Whether the page may have the response of `url` (CORS check); an error says why not.
    pub(in crate::player) fn may_have(
        &self,
        url: &Url,
        before: Origins,
        head: &http::response::Parts,
        credentials: CredentialsPolicy,
    ) -> Result<(), String> {
        if !self.needs_permission(url, before) {
            return Ok(());
        }
        // A server's error is often a response to which it forgets to add its headers.
        let of_status = match head.status {
            status if status.is_success() => String::new(),
            status => format!(" (HTTP status {})", status.as_u16()),
        };
        let (origin, is_included) =
            (self.origin(before), credentials == CredentialsPolicy::Include);
        let Some(allowed) = joined(&head.headers, &ACCESS_CONTROL_ALLOW_ORIGIN) else {
            return Err(format!(
                "no Access-Control-Allow-Origin for the origin {origin}{of_status}"
            ));
        };
        if allowed == "*" && !is_included {
            return Ok(());
        }
        if allowed != origin {
            let why = if allowed == "*" { ", which is not valid with credentials" } else { "" };
            let allowed = excerpt(&allowed);
            return Err(format!(
                "Access-Control-Allow-Origin is `{allowed}`{why}, the origin {origin}{of_status}"
            ));
        }
        match joined(&head.headers, &ACCESS_CONTROL_ALLOW_CREDENTIALS) {
            Some(value) if is_included && value != "true" => Err(format!(
                "Access-Control-Allow-Credentials is `{}`, not `true`",
                excerpt(&value)
            )),
            None if is_included => Err("no Access-Control-Allow-Credentials".to_owned()),
            _ => Ok(()),
        }
    }
}

/// The values of a header as one, which several lines of it are too (RFC 9110 section 5.3).
pub(in crate::player) fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values =
        headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.map(|value| value.trim().to_owned()).reduce(|all, value| format!("{all}, {value}"))
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    const PAGE: &str = "https://www.example.com/watch?v=1";

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    /// `Origin` and `Referer` of the last of requests that were redirected.
    fn said(page: &str, chain: &[&str]) -> (Option<String>, Option<String>) {
        let page = Embedding::at(&url(page), true);
        let (mut origins, mut headers) = (Origins::default(), HeaderMap::new());
        for pair in chain.windows(2) {
            origins = origins.redirected(&page, &url(pair[0]), &url(pair[1]));
        }
        page.describe(&url(chain.last().unwrap()), origins, &mut headers);
        let get = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        (get(ORIGIN), get(REFERER))
    }

    #[test]
    fn a_request_says_of_its_page_what_its_origins_may_know() {
        const ORIGIN: Option<&str> = Some("https://www.example.com");
        const SHORT: Option<&str> = Some("https://www.example.com/");
        let (home, a, b) =
            ("https://www.example.com/a", "https://a.example/", "https://b.example/");
        for (chain, origin, referer) in [
            (&[home][..], None, Some(PAGE)),
            (&["https://www.example.com:443/a"], None, Some(PAGE)),
            (&["https://www.example.com:8443/a"], ORIGIN, SHORT),
            (&[a], ORIGIN, SHORT),
            (&["http://www.example.com/a"], ORIGIN, None),
            (&[home, home], None, Some(PAGE)),
            (&[home, a], ORIGIN, SHORT),
            (&[a, "https://a.example/2"], ORIGIN, SHORT),
            (&[a, b], Some("null"), SHORT),
            // Once away, neither the origin nor the rest of the URL comes back.
            (&[a, home], Some("null"), SHORT),
            (&[a, b, b], Some("null"), SHORT),
            (&["http://a.example/", a], Some("null"), None),
        ] {
            assert_eq!(
                said(PAGE, chain),
                (origin.map(Into::into), referer.map(Into::into)),
                "{chain:?}"
            );
        }
        let plain = said("http://127.0.0.1:81/watch", &["https://127.0.0.1:81/"]);
        assert_eq!(
            plain,
            (Some("http://127.0.0.1:81".into()), Some("http://127.0.0.1:81/".into()))
        );
    }

    #[test]
    fn without_a_page_nothing_is_said_and_a_media_element_says_where_it_is() {
        let (media, away) = (url("http://a.example/"), url("http://b.example/"));
        let mut headers = HeaderMap::new();
        Embedding::unsaid(&media).describe(&away, Origins::default(), &mut headers);
        assert!(headers.is_empty());
        let element = Embedding::at(&url(PAGE), false);
        element.describe(&url("https://a.example/"), Origins::default(), &mut headers);
        assert_eq!((headers.get(ORIGIN), headers.len()), (None, 1));
        assert!(!element.needs_permission(&away, Origins::default()));
    }

    #[test]
    fn what_an_encrypted_page_requests_in_clear_text_is_mixed_content() {
        for (page, media, is_mixed) in [
            (PAGE, "http://www.example.com/a.ts", true),
            (PAGE, "http://www.example.com:8081/a.ts", true),
            (PAGE, "http://10.0.0.1/a.ts", true),
            (PAGE, "https://a.example/a.ts", false),
            (PAGE, "http://127.0.0.1:8081/a.ts", false),
            (PAGE, "http://[::1]/a.ts", false),
            (PAGE, "http://localhost/a.ts", false),
            (PAGE, "http://localhost.example.com/a.ts", true),
            ("http://www.example.com/", "http://www.example.com/a.ts", false),
        ] {
            let is = Embedding::at(&url(page), true).is_mixed(&url(media));
            assert_eq!(is, is_mixed, "{page} {media}");
        }
        let media = url("https://a.example/a.m3u8");
        assert!(Embedding::unsaid(&media).is_mixed(&url("http://a.example:8081/0.ts")));
    }

    fn check(credentials: CredentialsPolicy, headers: &[(&str, &str)]) -> Result<(), String> {
        let mut head = Response::builder();
        for (name, value) in headers {
            head = head.header(*name, *value);
        }
        let (head, ()) = head.body(()).unwrap().into_parts();
        let page = Embedding::at(&url(PAGE), true);
        page.may_have(&url("https://a.example/"), Origins::default(), &head, credentials)
    }

    #[test]
    fn a_response_is_the_pages_if_its_server_says_so() {
        use CredentialsPolicy::{Include, Omit, SameOrigin};
        const ALLOW: &str = "access-control-allow-origin";
        let own = (ALLOW, "https://www.example.com");
        let with = |value| ("access-control-allow-credentials", value);
        for (credentials, headers, expect) in [
            (SameOrigin, &[own][..], ""),
            (SameOrigin, &[(ALLOW, "*")], ""),
            (Omit, &[(ALLOW, " * ")], ""),
            (Include, &[own, with("true")], ""),
            (
                SameOrigin,
                &[],
                "no Access-Control-Allow-Origin for the origin https://www.example.com",
            ),
            (SameOrigin, &[(ALLOW, "https://www.example.com/")], "is `https://www.example.com/`"),
            (SameOrigin, &[(ALLOW, "https://WWW.example.com")], "is `https://WWW.example.com`"),
            (SameOrigin, &[(ALLOW, "null")], "is `null`"),
            (SameOrigin, &[own, own], "is `https://www.example.com, https://www.example.com`"),
            (SameOrigin, &[(ALLOW, "*"), (ALLOW, "*")], "is `*, *`"),
            (Include, &[(ALLOW, "*"), with("true")], "`*`, which is not valid with credentials"),
            (Include, &[own], "no Access-Control-Allow-Credentials"),
            (Include, &[own, with("TRUE")], "is `TRUE`, not `true`"),
        ] {
            let result = check(credentials, headers);
            match result {
                Ok(()) => assert_eq!(expect, "", "{credentials:?} {headers:?}"),
                Err(why) => {
                    assert!(!expect.is_empty() && why.contains(expect), "{why}: {headers:?}");
                }
            }
        }
    }
}
