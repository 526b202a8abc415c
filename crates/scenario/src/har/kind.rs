//! Which entries of a recording are repeated, and which are the player's.

use throng_observation::Url;

use super::document::{Entry, Leaf};

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Repeated,
    /// Playlists and segments.
    Media,
    Method,
    WebSocket,
    NotHttp,
    Unanswered,
}

/// MIME types of playlists and manifests (RFC 8216 section 4, ISO/IEC 23009-1 annex C).
const PLAYLIST_TYPES: [&str; 5] = [
    "application/vnd.apple.mpegurl",
    "application/x-mpegurl",
    "audio/mpegurl",
    "audio/x-mpegurl",
    "application/dash+xml",
];

/// MIME types that servers give to files of which they know nothing.
const UNKNOWN_TYPES: [&str; 5] =
    ["", "application/octet-stream", "binary/octet-stream", "text/plain", "x-unknown"];

/// Endings of the paths of media; keys of AES-128 are the player's too.
const MEDIA_ENDINGS: [&str; 16] = [
    "m3u8", "mpd", "ts", "m4s", "mp4", "m4v", "m4a", "cmfv", "cmfa", "webm", "mov", "mp3", "aac",
    "ogg", "ogv", "key",
];

impl Kind {
    /// Of an entry with this URL and the status of its response.
    pub(super) fn of(entry: &Entry, url: &Url, status: u16) -> Self {
        let method = entry.request.method.text().unwrap_or_default();
        let resource_type = entry.resource_type.text().unwrap_or_default();
        if matches!(url.scheme(), "ws" | "wss") || resource_type == "websocket" || status == 101 {
            return Self::WebSocket;
        }
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Self::NotHttp;
        }
        if !is_get(&entry.request.method) && method != "HEAD" {
            return Self::Method;
        }
        if is_media(&mime_type(entry), url.in_clear().path()) {
            return Self::Media;
        }
        if status == 0 { Self::Unanswered } else { Self::Repeated }
    }
}

pub(super) fn is_get(method: &Leaf) -> bool {
    method.text() == Some("GET")
}

/// Whether the entry is a page.
pub(super) fn is_document(entry: &Entry) -> bool {
    match entry.resource_type.text() {
        Some(resource_type) => resource_type == "document",
        None => matches!(mime_type(entry).as_str(), "text/html" | "application/xhtml+xml"),
    }
}

/// The MIME type without its parameters.
fn mime_type(entry: &Entry) -> String {
    let text = entry.response.content.mime_type.text().unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn is_media(mime_type: &str, path: &str) -> bool {
    let ending =
        path.rsplit('/').next().unwrap_or_default().rsplit_once('.').map(|(_, ending)| ending);
    let is_named =
        ending.is_some_and(|ending| MEDIA_ENDINGS.iter().any(|m| ending.eq_ignore_ascii_case(m)));
    let is_typed = ["video/", "audio/"].iter().any(|family| mime_type.starts_with(family));
    // `.ts` is a script too, where the server says so.
    is_typed
        || PLAYLIST_TYPES.contains(&mime_type)
        || (is_named && UNKNOWN_TYPES.contains(&mime_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_is_told_by_its_type_and_by_its_name_where_the_type_says_nothing() {
        for (mime_type, path, expect) in [
            ("video/mp2t", "/a", true),
            ("audio/mpeg", "/chime", true),
            ("application/vnd.apple.mpegurl", "/live", true),
            ("application/dash+xml", "/x", true),
            ("application/octet-stream", "/live-1.ts", true),
            ("", "/live.M3U8", true),
            ("text/plain", "/a.key", true),
            ("text/javascript", "/app.ts", false),
            ("image/jpeg", "/poster.mp4.jpg", false),
            ("application/octet-stream", "/font.woff2", false),
            ("application/json", "/mp4", false),
        ] {
            assert_eq!(is_media(mime_type, path), expect, "{mime_type} {path}");
        }
    }
}
