//! The keys of encrypted segments (AES-128, RFC 8216 section 4.3.2.4). A viewer fetches each once,
//! whichever lane needs it first (hls.js `key-loader.ts`).

use std::collections::VecDeque;

use throng_observation::Url;

use super::decrypt::KEY_LEN;

/// Keys that are kept: a stream that has a key for each segment needs a few at a time.
const KEPT_MAX: usize = 64;

/// The keys of a viewer.
#[derive(Debug, Default)]
pub(in crate::player) struct Keys {
    known: VecDeque<(Url, [u8; KEY_LEN])>,
    /// Those that a lane is fetching.
    loading: Vec<Url>,
}

impl Keys {
    /// The key from `url`, where it is known.
    pub(in crate::player) fn get(&self, url: &Url) -> Option<[u8; KEY_LEN]> {
        self.known.iter().find(|(known, _)| known == url).map(|(_, key)| *key)
    }

    /// Whether a lane is fetching the key from `url`.
    pub(in crate::player) fn is_loading(&self, url: &Url) -> bool {
        self.loading.contains(url)
    }

    /// A lane begins to fetch the key from `url`.
    pub(in crate::player) fn begin(&mut self, url: &Url) {
        self.loading.push(url.clone());
    }

    /// Nobody fetches the key from `url` any more.
    pub(in crate::player) fn end(&mut self, url: &Url) {
        self.loading.retain(|loading| loading != url);
    }

    /// The key from `url` was fetched.
    pub(in crate::player) fn learn(&mut self, url: Url, key: [u8; KEY_LEN]) {
        self.end(&url);
        if self.known.len() >= KEPT_MAX {
            self.known.pop_front();
        }
        self.known.push_back((url, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_keys_are_kept_and_each_is_fetched_by_one_lane() {
        let url = |at: usize| Url::parse(&format!("http://10.0.0.1/{at}.key")).unwrap();
        let mut keys = Keys::default();
        keys.begin(&url(0));
        assert!(keys.is_loading(&url(0)) && !keys.is_loading(&url(1)));
        for at in 0..=KEPT_MAX {
            keys.learn(url(at), [at as u8; KEY_LEN]);
        }
        assert!(!keys.is_loading(&url(0)));
        assert_eq!(
            (keys.get(&url(0)), keys.get(&url(KEPT_MAX))),
            (None, Some([KEPT_MAX as u8; KEY_LEN]))
        );
    }
}
