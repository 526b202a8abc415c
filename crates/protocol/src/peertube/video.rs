//! What the API says of a video.

use serde::Deserialize;
use throng_observation::Url;

/// `VideoState.PUBLISHED` of PeerTube.
const PUBLISHED: u32 = 1;

/// Tags of a video, and letters of a tag, that PeerTube allows
/// (`CONSTRAINTS_FIELDS.VIDEOS.TAGS`, `TAG`); a server that says more is not sent more.
const TAGS_MAX: usize = 5;
const TAG_LETTERS_MAX: usize = 30;

/// Longest id in the paths of requests: a UUID has 36 letters.
const ID_LETTERS_MAX: usize = 64;

/// `GET /api/v1/videos/ID`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Video {
    pub(super) id: u64,
    #[serde(deserialize_with = "id_of_path")]
    pub(super) uuid: String,
    #[serde(default)]
    pub(super) is_live: bool,
    state: Option<State>,
    #[serde(default)]
    pub(super) streaming_playlists: Vec<StreamingPlaylist>,
    #[serde(default)]
    tracker_urls: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
}

/// A list of videos, as far as it is of interest.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Found {
    #[serde(default)]
    pub(super) data: Vec<serde::de::IgnoredAny>,
}

#[derive(Clone, Debug, Deserialize)]
struct State {
    id: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StreamingPlaylist {
    playlist_url: String,
    segments_sha256_url: Option<String>,
}

/// `GET /api/v1/videos/live/ID`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Live {
    #[serde(default = "default_mode")]
    latency_mode: u32,
}

fn default_mode() -> u32 {
    1
}

/// An id that becomes a part of paths: neither another path nor a long one.
fn id_of_path<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let id = String::deserialize(from)?;
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if id.len() <= ID_LETTERS_MAX && id.bytes().all(is_letter) {
        Ok(id)
    } else {
        Err(serde::de::Error::custom("the uuid is no id"))
    }
}

/// `GET …/router/api/configuration/room/ID` of the livechat plugin.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Room {
    pub(super) room: String,
    #[serde(rename = "localAnonymousJID")]
    pub(super) local_anonymous_jid: String,
    pub(super) local_websocket_service_url: String,
}

impl Video {
    /// The query of the search for what the page recommends: videos with one of its tags.
    pub(super) fn recommended(&self) -> String {
        let tags = self.tags.iter().take(TAGS_MAX).map(|tag| {
            let tag: String = tag.chars().take(TAG_LETTERS_MAX).collect();
            let tag: String = url::form_urlencoded::byte_serialize(tag.as_bytes()).collect();
            format!("&tagsOneOf={tag}")
        });
        let tags: String = tags.collect();
        format!(
            "start=0&count=6&skipCount=true&nsfw=false&sort=-publishedAt{tags}&searchTarget=local"
        )
    }

    /// What is to be played, if it can be.
    pub(super) fn playlist(&self) -> Option<&StreamingPlaylist> {
        let is_published = self.state.as_ref().is_none_or(|state| state.id == PUBLISHED);
        self.streaming_playlists.first().filter(|_| is_published)
    }

    /// The tracker that browsers can reach from `page`: from one over https, none in clear text.
    pub(super) fn tracker(&self, page: &Url) -> Option<Url> {
        let mut urls = self.tracker_urls.iter().filter_map(|url| Url::parse(url).ok());
        let is_secure = page.scheme() == "https";
        urls.find(|url| url.scheme() == "wss" || (url.scheme() == "ws" && !is_secure))
    }
}

impl StreamingPlaylist {
    /// The HLS playlist; `page` is what its URL is relative to.
    pub(super) fn playlist(&self, page: &Url) -> Option<Url> {
        page.join(&self.playlist_url).ok()
    }

    /// The list of hashes, if there is one.
    pub(super) fn hashes(&self, page: &Url) -> Option<Url> {
        self.segments_sha256_url.as_ref().and_then(|url| page.join(url).ok())
    }
}

impl Live {
    pub(super) const USUAL: Self = Self { latency_mode: 1 };

    /// Segments between the end of the stream and playback (`liveSyncDurationCount`).
    pub(super) fn segments_behind(self) -> u32 {
        match self.latency_mode {
            2 => 10,
            3 => 2,
            _ => 5,
        }
    }

    /// Whether viewers may get segments from each other: not with small latency.
    pub(super) fn allows_peers(self) -> bool {
        self.latency_mode != 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_over_https_has_no_tracker_in_clear_text() {
        let (plain, secure) = ("ws://h/tracker/socket", "wss://h/tracker/socket");
        for (page, urls, expect) in [
            ("http://h/w/1", &["http://h/tracker/announce", plain, secure][..], Some(plain)),
            ("https://h/w/1", &[plain, secure][..], Some(secure)),
            ("https://h/w/1", &[plain][..], None),
        ] {
            let json = serde_json::json!({ "id": 7, "uuid": "u", "trackerUrls": urls });
            let video: Video = serde_json::from_value(json).unwrap();
            let tracker = video.tracker(&Url::parse(page).unwrap());
            assert_eq!(tracker.as_ref().map(|url| url.in_clear().as_str()), expect, "{page}");
        }
    }

    #[test]
    fn what_a_server_says_of_a_video_makes_no_other_path_and_no_long_query() {
        let video = |uuid: &str, tags: &[String]| {
            let json = serde_json::json!({ "id": 7, "uuid": uuid, "tags": tags });
            serde_json::from_value::<Video>(json)
        };
        assert_eq!(video("3f9c2-x", &[]).unwrap().uuid, "3f9c2-x");
        for uuid in ["../users", "a/b", "a?b", &"x".repeat(ID_LETTERS_MAX + 1)] {
            assert!(video(uuid, &[]).is_err(), "{uuid}");
        }
        let tagged = video("u", &["a b".to_owned(), "c".to_owned()]).unwrap().recommended();
        assert_eq!(
            tagged,
            "start=0&count=6&skipCount=true&nsfw=false&sort=-publishedAt&tagsOneOf=a+b&tagsOneOf=c\
             &searchTarget=local"
        );
        let tags = vec!["ü".repeat(1_000); 1_000];
        assert!(video("u", &tags).unwrap().recommended().len() < 2_000);
    }
}
