//! What a request brings of its viewer: the token, further headers, cookies.

use std::time::Instant;

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};
use throng_media::quality::WallClock;
use throng_observation::Url;
use throng_scenario::{CredentialsPolicy, TokenSource};

use super::HttpClient;
use crate::player::download::cookies::is_cross_site;
use crate::player::download::cors::Origins;

impl HttpClient {
    /// Keeps cookies, of these requests.
    pub(in crate::player) fn keep_cookies(
        &mut self,
        credentials: CredentialsPolicy,
        clock: WallClock,
    ) {
        (self.credentials, self.clock) = (credentials, Some(clock));
    }

    /// Further headers of requests to the origin of the URL. Values that are not known are left
    /// out.
    pub(in crate::player) fn add_headers(&mut self, headers: &[(String, TokenSource)]) {
        for (name, value) in headers {
            let TokenSource::Inline(value) = value else { continue };
            if let (Ok(name), Ok(mut value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value.expose()))
            {
                // Neither printed nor kept in the compression tables of HTTP/2 and HTTP/3.
                value.set_sensitive(true);
                self.headers.push((name, value));
            }
        }
    }

    /// Adds the token and further headers to a request for `url`. Other origins do not get them,
    /// such as another port, or the same host in clear text. As browsers do it, a redirect to
    /// another origin leaves the token behind, wherever the next one leads.
    pub(super) fn authorize(&self, url: &Url, before: Origins, headers: &mut HeaderMap) {
        if url.origin() != self.origin {
            return;
        }
        if let Some(token) = self.token.as_ref().filter(|_| !before.has_crossed()) {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            headers.extend(value.ok().map(|value| (AUTHORIZATION, value)));
        }
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
    }

    /// Adds cookies to what `player.headers` may say.
    pub(super) fn add_cookies(
        &mut self,
        now: Instant,
        url: &Url,
        before: Origins,
        headers: &mut HeaderMap,
    ) {
        let Some(unix_s) = self.cookie_time(now, url, before) else { return };
        let Some(cookies) = self.cookies.header(unix_s, url, is_cross_site(self.page.url(), url))
        else {
            return;
        };
        let given = headers.get(COOKIE).and_then(|value| value.to_str().ok());
        let all = given.map_or_else(|| cookies.clone(), |given| format!("{given}; {cookies}"));
        if let Ok(mut value) = HeaderValue::try_from(all) {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
    }

    /// The wall clock, seconds since 1970, if this request brings cookies.
    fn cookie_time(&self, now: Instant, url: &Url, before: Origins) -> Option<i64> {
        let brings = match self.credentials {
            CredentialsPolicy::Include => true,
            CredentialsPolicy::SameOrigin => !before.is_foreign(&self.page, url),
            CredentialsPolicy::Omit => false,
        };
        let unix_ns = self.clock.filter(|_| brings)?.unix_ns(now);
        i64::try_from(unix_ns / 1_000_000_000).ok()
    }

    /// Keeps the cookies of a response, whatever its status, if its request could bring some. That
    /// the page may not have the response does not matter (seen with Chromium 156).
    pub(in crate::player) fn learn_cookies(
        &mut self,
        now: Instant,
        url: &Url,
        head: &http::response::Parts,
        before: Origins,
    ) {
        if let Some(unix_s) = self.cookie_time(now, url, before) {
            self.cookies.store(unix_s, url, &head.headers, is_cross_site(self.page.url(), url));
        }
    }
}
