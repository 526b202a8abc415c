//! Content encodings, cookies, and what a server permits the pages of others.

use std::time::Instant;

use http::HeaderValue;
use http::header::ACCESS_CONTROL_ALLOW_ORIGIN;
use throng_observation::Url;
use throng_protocol::player::{cookies_after, decode_any_body, permission_by};
use throng_scenario::CredentialsPolicy;

use super::dialogue::response_of;

/// What a body may become, bytes.
const BODY_BYTES_MAX: usize = 256 << 10;
/// Cookies of a site, as Chromium keeps.
const COOKIES_MAX: usize = 180;
/// The longest reason, bytes.
const WHY_BYTES_MAX: usize = 2_000;

/// A body in each encoding: it becomes no more than it may, and a whole one becomes the same in
/// pieces of any length.
pub(crate) fn encoding(bytes: &[u8]) {
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let whole = decode_any_body(encoding, bytes, bytes.len(), BODY_BYTES_MAX);
        let pieces = decode_any_body(encoding, bytes, 7, BODY_BYTES_MAX);
        for body in [&whole, &pieces].into_iter().flatten() {
            assert!(body.len() <= BODY_BYTES_MAX, "{encoding}: {} bytes", body.len());
        }
        if let (Some(whole), Some(pieces)) = (whole, pieces) {
            assert_eq!(whole, pieces, "{encoding}");
        }
    }
}

/// Values of `Set-Cookie`, a line each: what is sent back is a header, of so many cookies; none
/// goes to another site, and none that is secure in clear text.
pub(crate) fn cookies(bytes: &[u8]) {
    let [secure, plain, below, other] = [
        "https://a.example.com/live/x.m3u8",
        "http://a.example.com/live/1.ts",
        "https://b.example.com/live/1.ts",
        "https://a.example.org/live/1.ts",
    ]
    .map(|url| url.parse::<Url>().expect("a URL"));
    let lines = || bytes.split(|byte| *byte == b'\n').take(300);
    for to in [&secure, &plain, &below] {
        let Some(header) = cookies_after(lines(), &secure, to) else { continue };
        assert!(HeaderValue::try_from(&header).is_ok(), "{header:?}");
        assert!(header.split("; ").count() <= COOKIES_MAX);
    }
    assert_eq!(cookies_after(lines(), &secure, &other), None);
    let all_secure: Vec<_> = lines().map(|line| [line, b"; Secure"].concat()).collect();
    let sent = cookies_after(all_secure.iter().map(Vec::as_slice), &secure, &plain);
    assert_eq!(sent, None);
}

/// The head of a response: a page may have it only if the server names its origin, or all.
pub(crate) fn cors(bytes: &[u8]) {
    let head = response_of(bytes).head;
    let [page, url] = ["https://www.example.com/watch", "https://cdn.example/live.m3u8"]
        .map(|url| url.parse::<Url>().expect("a URL"));
    let named: Vec<_> = head
        .headers
        .get_all(ACCESS_CONTROL_ALLOW_ORIGIN)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
        .collect();
    let policies =
        [CredentialsPolicy::Omit, CredentialsPolicy::SameOrigin, CredentialsPolicy::Include];
    for credentials in policies {
        let [may_have, may_ask] = permission_by(Instant::now(), &page, &url, &head, credentials);
        for why in [&may_have, &may_ask].into_iter().filter_map(|result| result.as_ref().err()) {
            assert!(why.len() <= WHY_BYTES_MAX, "{} bytes of reason", why.len());
        }
        if may_have.is_ok() {
            let is_all = named == ["*"] && credentials != CredentialsPolicy::Include;
            assert!(is_all || named == ["https://www.example.com"], "{named:?}");
        }
        assert!(may_ask.is_err() || head.status.is_success());
    }
}
