//! Playlists that many viewers receive, read once.
//!
//! A thousand viewers of a live stream receive the same playlist within a second. Its bytes are
//! compared with those of the playlists received last, which is stricter than a hash; only what
//! differs is read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::ManifestError;
use super::dash::Manifest;
use super::hls::{MediaPlaylist, Playlist, Variables};

/// Playlists that are remembered: renditions times the moments at which viewers are behind each
/// other. Behind that many others it is read again.
const REMEMBERED_MAX: usize = 64;

/// Playlists of viewers that were given clones of this one.
#[derive(Clone, Debug, Default)]
pub struct PlaylistCache(Arc<Mutex<Recent>>);

#[derive(Debug, Default)]
struct Recent {
    playlists: VecDeque<(Box<[u8]>, Variables, Arc<Playlist>)>,
    manifests: VecDeque<(Box<[u8]>, Arc<Manifest>)>,
    whole: VecDeque<Completed>,
}

/// A delta update, what was before it, and the two together.
#[derive(Debug)]
struct Completed {
    update: Arc<MediaPlaylist>,
    before: Arc<MediaPlaylist>,
    whole: Option<Arc<MediaPlaylist>>,
}

fn remember<T>(queue: &mut VecDeque<T>, entry: T) {
    queue.truncate(REMEMBERED_MAX - 1);
    queue.push_front(entry);
}

impl PlaylistCache {
    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The playlist in `bytes`.
    ///
    /// # Errors
    /// Those of [`Playlist::parse_with`].
    pub fn playlist(
        &self,
        bytes: &[u8],
        variables: &Variables,
    ) -> Result<Arc<Playlist>, ManifestError> {
        // A playlist that uses no variables is the same for all.
        let is_same = |known: &Variables| known == variables || !uses_variables(bytes);
        let mut recent = self.recent();
        let known =
            recent.playlists.iter().find(|(known, with, _)| **known == *bytes && is_same(with));
        if let Some((_, _, playlist)) = known {
            return Ok(Arc::clone(playlist));
        }
        let playlist = Arc::new(Playlist::parse_with(bytes, variables)?);
        remember(&mut recent.playlists, (bytes.into(), variables.clone(), Arc::clone(&playlist)));
        Ok(playlist)
    }

    /// The manifest of DASH in `bytes`.
    ///
    /// # Errors
    /// Those of [`Manifest::parse`].
    pub fn manifest(&self, bytes: &[u8]) -> Result<Arc<Manifest>, ManifestError> {
        let mut recent = self.recent();
        if let Some((_, manifest)) = recent.manifests.iter().find(|(known, _)| **known == *bytes) {
            return Ok(Arc::clone(manifest));
        }
        let manifest = Arc::new(Manifest::parse(bytes)?);
        remember(&mut recent.manifests, (bytes.into(), Arc::clone(&manifest)));
        Ok(manifest)
    }

    /// [`MediaPlaylist::with_skipped`], made once for all viewers with the same two.
    #[must_use]
    pub fn with_skipped(
        &self,
        update: &Arc<MediaPlaylist>,
        before: &Arc<MediaPlaylist>,
    ) -> Option<Arc<MediaPlaylist>> {
        let mut recent = self.recent();
        let is_same = |known: &&Completed| {
            Arc::ptr_eq(&known.update, update) && Arc::ptr_eq(&known.before, before)
        };
        if let Some(known) = recent.whole.iter().find(is_same) {
            return known.whole.clone();
        }
        let whole = update.with_skipped(before).map(Arc::new);
        let (update, before) = (Arc::clone(update), Arc::clone(before));
        remember(&mut recent.whole, Completed { update, before, whole: whole.clone() });
        whole
    }
}

fn uses_variables(bytes: &[u8]) -> bool {
    let tag = b"#EXT-X-DEFINE";
    bytes.windows(tag.len()).any(|window| window == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: &[u8] = b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n";

    #[test]
    fn the_same_bytes_are_read_once_and_others_are_not_taken_for_them() {
        let cache = PlaylistCache::default();
        let read = |bytes: &[u8]| cache.clone().playlist(bytes, &Variables::default()).unwrap();
        assert!(Arc::ptr_eq(&read(LIVE), &read(LIVE)));
        let other = [LIVE, b"#EXTINF:2,\nb.ts\n"].concat();
        assert!(!Arc::ptr_eq(&read(LIVE), &read(&other)));
        for number in 0..2 * REMEMBERED_MAX {
            read(&[LIVE, format!("#EXTINF:2,\n{number}.ts\n").as_bytes()].concat());
        }
        assert_eq!(cache.recent().playlists.len(), REMEMBERED_MAX);
        assert!(cache.playlist(b"<html>", &Variables::default()).is_err());
    }

    #[test]
    fn a_playlist_with_variables_is_another_one_for_each_value() {
        let cache = PlaylistCache::default();
        let read = |bytes: &[u8], token: &str| {
            let query = [("t".to_owned(), token.to_owned())].into();
            cache.playlist(bytes, &Variables { query, ..Variables::default() }).unwrap()
        };
        assert!(Arc::ptr_eq(&read(LIVE, "1"), &read(LIVE, "2")), "it uses none");
        let with = b"#EXTM3U\n#EXT-X-DEFINE:QUERYPARAM=\"t\"\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{$t}.ts\n";
        let (one, two) = (read(with, "1"), read(with, "2"));
        assert_ne!(one, two);
        assert!(Arc::ptr_eq(&one, &read(with, "1")));
    }
}
