//! What a list of hashes says, and the lists that the viewers of this process have read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use aws_lc_rs::digest;
use serde_json::{Map, Value};

use crate::player::manifest::presentation::Resource;

/// Bytes of a SHA-256.
const HASH_LEN: usize = 32;

/// First and last byte of a part of a file, inclusive.
type Range = (u64, u64);

/// A list of hashes: by the names of files.
#[derive(Debug, Default)]
pub(super) struct HashList(HashMap<String, Hashed>);

/// A file of the list.
#[derive(Debug)]
enum Hashed {
    /// It is a segment.
    Whole(Sha256),
    /// Its parts are segments: a recording.
    Ranges(HashMap<Range, Sha256>),
}

/// A hash; `None` for what is none, which nothing matches.
#[derive(Clone, Copy, Debug)]
struct Sha256(Option<[u8; HASH_LEN]>);

impl HashList {
    /// Reads a list: `{"FILE": "HASH"}`, and of recordings `{"FILE": {"FIRST-LAST": "HASH"}}`.
    pub(super) fn read(text: &[u8]) -> Result<Self, serde_json::Error> {
        let files: Map<String, Value> = serde_json::from_slice(text)?;
        let files = files.into_iter().map(|(name, value)| {
            let hashed = match value {
                Value::Object(ranges) => Hashed::Ranges(
                    ranges
                        .iter()
                        .filter_map(|(range, hash)| Some((range_of(range)?, Sha256::read(hash))))
                        .collect(),
                ),
                hash => Hashed::Whole(Sha256::read(&hash)),
            };
            (name, hashed)
        });
        Ok(Self(files.collect()))
    }

    /// Whether it has this file, or parts of it.
    pub(super) fn lists(&self, file: &str) -> bool {
        self.0.contains_key(file)
    }

    /// Whether it names this segment.
    pub(super) fn names(&self, segment: &Resource) -> bool {
        self.hash(segment).is_some()
    }

    /// Whether `bytes` are those of `segment`.
    pub(super) fn match_bytes(&self, segment: &Resource, bytes: &[u8]) -> bool {
        self.hash(segment).is_some_and(|hash| hash.is_of(bytes))
    }

    /// One hash of a file is compared with whatever came of it, as by PeerTube's page.
    fn hash(&self, segment: &Resource) -> Option<Sha256> {
        match (self.0.get(file_of(segment))?, segment.range) {
            (Hashed::Whole(hash), _) => Some(*hash),
            (Hashed::Ranges(ranges), Some(range)) => ranges.get(&range).copied(),
            (Hashed::Ranges(_), None) => None,
        }
    }
}

impl Sha256 {
    fn read(value: &Value) -> Self {
        Self(value.as_str().and_then(hash_of))
    }

    fn is_of(self, bytes: &[u8]) -> bool {
        let of_bytes = digest::digest(&digest::SHA256, bytes);
        let of_bytes: &[u8] = of_bytes.as_ref();
        self.0.is_some_and(|hash| hash.as_slice() == of_bytes)
    }
}

/// A hash in hexadecimal digits.
fn hash_of(text: &str) -> Option<[u8; HASH_LEN]> {
    let digits: Vec<u32> =
        text.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<_>>>()?;
    let mut hash = [0; HASH_LEN];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
    }
    Some(hash).filter(|_| digits.len() == 2 * HASH_LEN)
}

/// `FIRST-LAST`.
fn range_of(text: &str) -> Option<Range> {
    let (first, last) = text.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// The last part of its path.
pub(super) fn file_of(segment: &Resource) -> &str {
    let parts = segment.url.in_clear().path_segments();
    parts.and_then(|mut parts| parts.next_back()).unwrap_or_default()
}

/// The lists that viewers of this process have, each once: that of a recording has thousands of
/// hashes.
#[derive(Clone, Debug, Default)]
pub(in crate::player::p2p) struct HashLists(Arc<Mutex<Vec<Known>>>);

/// A list that somebody has.
#[derive(Debug)]
struct Known {
    /// The hash of its text.
    text: Vec<u8>,
    list: Weak<HashList>,
}

impl HashLists {
    /// Reads a list, unless somebody has read the same.
    pub(super) fn read(&self, text: &[u8]) -> Result<Arc<HashList>, serde_json::Error> {
        let hash = digest::digest(&digest::SHA256, text);
        if let Some(list) = self.known(hash.as_ref()) {
            return Ok(list);
        }
        let list = Arc::new(HashList::read(text)?);
        let known = Known { text: hash.as_ref().to_vec(), list: Arc::downgrade(&list) };
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.retain(|known| known.list.strong_count() > 0);
        lists.push(known);
        Ok(list)
    }

    fn known(&self, text: &[u8]) -> Option<Arc<HashList>> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.iter().find(|known| known.text == text)?.list.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::Url;

    use super::*;

    fn segment(file: &str, range: Option<Range>) -> Resource {
        Resource { url: Url::parse(&format!("http://10.0.0.1/hls/{file}?t=1")).unwrap(), range }
    }

    /// Of "abc" and of nothing (FIPS 180-4's examples).
    const OF_ABC: &str = "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD";
    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn each_range_of_a_recording_has_a_hash_of_its_own() {
        let ranges = format!(r#"{{"0-2":"{OF_ABC}","3-5":"{OF_NOTHING}","x":"{OF_ABC}"}}"#);
        let text = format!(r#"{{"a.ts":"{OF_ABC}","film.mp4":{ranges}}}"#);
        let list = HashList::read(text.as_bytes()).unwrap();
        assert!(list.lists("film.mp4") && !list.lists("other.mp4"));
        for (segment, is_named, is_abc) in [
            (segment("a.ts", None), true, true),
            (segment("film.mp4", Some((0, 2))), true, true),
            (segment("film.mp4", Some((3, 5))), true, false),
            (segment("film.mp4", Some((0, 5))), false, false),
            (segment("film.mp4", None), false, false),
            (segment("other.mp4", Some((0, 2))), false, false),
        ] {
            assert_eq!(list.names(&segment), is_named, "{segment:?}");
            assert_eq!(list.match_bytes(&segment, b"abc"), is_abc, "{segment:?}");
            assert!(!list.match_bytes(&segment, b"abd"), "{segment:?}");
        }
        assert!(list.match_bytes(&segment("film.mp4", Some((3, 5))), b""));
    }

    #[test]
    fn what_is_no_hash_names_a_segment_that_nothing_matches() {
        for hash in ["1".to_owned(), OF_ABC.replace('F', "x"), format!("{OF_ABC}00"), "é".into()] {
            let list = HashList::read(format!(r#"{{"a.ts":"{hash}"}}"#).as_bytes()).unwrap();
            let segment = segment("a.ts", None);
            assert!(list.names(&segment) && !list.match_bytes(&segment, b"abc"), "{hash}");
        }
        assert!(HashList::read(b"[1]").is_err() && HashList::read(b"<html>").is_err());
    }

    #[test]
    fn the_same_text_is_read_once_as_long_as_somebody_has_the_list() {
        let lists = HashLists::default();
        let [a, b] = [(); 2].map(|()| lists.read(br#"{"a.ts":"1"}"#).unwrap());
        assert!(Arc::ptr_eq(&a, &b));
        let other = lists.read(br#"{"b.ts":"1"}"#).unwrap();
        assert!(other.lists("b.ts") && !Arc::ptr_eq(&a, &other));
        drop((a, b));
        assert!(lists.read(br#"{"a.ts":"1"}"#).unwrap().lists("a.ts"));
        assert_eq!(lists.0.lock().unwrap().len(), 2, "what nobody has is forgotten");
    }
}
