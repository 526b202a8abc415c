//! What of a recording is not repeated.

use std::collections::BTreeMap;

/// Origins that are named in a sentence.
const NAMED_MAX: usize = 8;

/// Entries of a recording that are not repeated, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// To origins that get no load.
    pub origins: BTreeMap<String, usize>,
    /// Playlists and segments: the player requests its own.
    pub media: usize,
    /// Neither GET nor HEAD.
    pub methods: usize,
    /// WebSockets.
    pub websockets: usize,
    /// `data:`, `blob:` and other URLs that are not HTTP.
    pub not_http: usize,
    /// Without a response: blocked or broken off.
    pub unanswered: usize,
    /// The same again, which the browser had in its cache.
    pub cached: usize,
    /// Of pages after the first.
    pub other_pages: usize,
}

impl LeftOut {
    /// Names what is left out; `None` if nothing is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let counts = [
            (self.media, "of media, which the player requests itself"),
            (self.methods, "neither GET nor HEAD"),
            (self.websockets, "WebSockets"),
            (self.not_http, "of URLs that are not HTTP (data:, blob:)"),
            (self.unanswered, "without a response"),
            (self.cached, "again from the browser's cache"),
            (self.other_pages, "of further pages"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{count} {what}"));
        let parts: Vec<String> = self.elsewhere().into_iter().chain(counts).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Those to other origins, the most frequent first.
    fn elsewhere(&self) -> Option<String> {
        let mut origins: Vec<_> = self.origins.iter().collect();
        origins.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let all: usize = origins.iter().map(|(_, count)| **count).sum();
        let mut named: Vec<String> = origins
            .iter()
            .take(NAMED_MAX)
            .map(|(origin, count)| format!("{origin} {count}"))
            .collect();
        if origins.len() > NAMED_MAX {
            named.push(format!("{} more", origins.len() - NAMED_MAX));
        }
        (all > 0).then(|| format!("{all} to other origins ({})", named.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_hosts_by_their_counts_and_bounds_their_number() {
        assert_eq!(LeftOut::default().sentence(), None);
        let origins = [("https://ads.example", 2), ("https://cdn.example", 7)];
        let mut left = LeftOut {
            origins: origins.map(|(origin, count)| (origin.to_owned(), count)).into(),
            media: 3,
            ..LeftOut::default()
        };
        assert_eq!(
            left.sentence().unwrap(),
            "9 to other origins (https://cdn.example 7, https://ads.example 2), 3 of media, which the player requests itself"
        );
        left.origins.extend((0..20).map(|n| (format!("https://n{n}.example"), 1)));
        assert!(left.sentence().unwrap().contains(", 14 more)"), "{:?}", left.sentence());
    }
}
