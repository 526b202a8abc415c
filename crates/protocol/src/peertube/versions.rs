//! What the versions of PeerTube differ in.

use throng_scenario::PeerEngine;

/// What a page of a version asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// From this version on.
    since: (u32, u32),
    /// Chapters and storyboards.
    pub(super) has_chapters: bool,
    /// `GET /api/v1/player-settings/videos/ID`.
    pub(super) has_player_settings: bool,
    /// Heartbeats carry `sessionId`, by which viewers are told apart.
    pub(super) has_sessions: bool,
    /// The page asks for the configuration and for a client of OAuth, and searches for what it
    /// recommends; livechat asks for its settings three times. Seen on 7.0.0, and not looked for in
    /// others.
    pub(super) searches: bool,
    /// The P2P engine of its player.
    pub(super) engine: PeerEngine,
}

/// The newest first.
const VERSIONS: [Version; 7] = [
    Version {
        since: (9, 0),
        has_chapters: true,
        has_player_settings: true,
        has_sessions: true,
        searches: false,
        engine: PeerEngine::V4,
    },
    Version {
        since: (8, 0),
        has_chapters: true,
        has_player_settings: true,
        has_sessions: true,
        searches: false,
        engine: PeerEngine::V22,
    },
    Version {
        since: (7, 1),
        has_chapters: true,
        has_player_settings: false,
        has_sessions: true,
        searches: false,
        engine: PeerEngine::V22,
    },
    Version {
        since: (7, 0),
        has_chapters: true,
        has_player_settings: false,
        has_sessions: true,
        searches: true,
        engine: PeerEngine::V06,
    },
    Version {
        since: (6, 1),
        has_chapters: true,
        has_player_settings: false,
        has_sessions: true,
        searches: false,
        engine: PeerEngine::V06,
    },
    Version {
        since: (6, 0),
        has_chapters: true,
        has_player_settings: false,
        has_sessions: false,
        searches: false,
        engine: PeerEngine::V06,
    },
    Version {
        since: (0, 0),
        has_chapters: false,
        has_player_settings: false,
        has_sessions: false,
        searches: false,
        engine: PeerEngine::V06,
    },
];

impl Version {
    /// The engine of its player, where a scenario names `asked`: packages of PeerTube ask for 2.2
    /// or newer, and get 2.3 as well.
    pub(super) fn engine_with(&self, asked: PeerEngine) -> PeerEngine {
        match (self.engine, asked) {
            (PeerEngine::V22, PeerEngine::V23) => asked,
            (engine, _) => engine,
        }
    }
}

/// That of pages that do not say it: the newest that is released.
const UNSAID: (u32, u32) = (8, u32::MAX);

/// The version of the server whose page this is: the page contains the server's configuration.
pub(super) fn of_page(page: &[u8]) -> Version {
    let text = String::from_utf8_lossy(page);
    let said = text.split("serverVersion").nth(1).and_then(|rest| {
        let begins = rest.find(|letter: char| letter.is_ascii_digit())?;
        let number = rest.get(begins..)?.get(..16)?;
        let mut parts = number.split(|letter: char| !letter.is_ascii_digit());
        // Quotes and escapes, no words, are between the name and the number.
        (begins < 8).then_some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    of(said.unwrap_or(UNSAID))
}

/// Whether the configuration in the page lists the plugin of chats.
pub(super) fn has_livechat(page: &[u8]) -> bool {
    String::from_utf8_lossy(page).contains("peertube-plugin-livechat")
}

fn of(version: (u32, u32)) -> Version {
    let found = VERSIONS.into_iter().find(|known| known.since <= version);
    found.unwrap_or(VERSIONS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_its_version_in_json_or_in_a_string_of_json() {
        for (page, since) in [
            (r#"{"serverVersion":"5.0.1","a":"bbbbbbbbbbbbbbbbb"}"#, (0, 0)),
            (r#"x = "{\"serverVersion\":\"6.3.3\",\"a\":\"bbbbbbbbbbbb\"}""#, (6, 1)),
            (r#"{"serverVersion":"9.0.0-rc.1","a":"bbbbbbbbbbbbbbbbb"}"#, (9, 0)),
            (r#"{"serverVersion":"8.2.4","a":"bbbbbbbbbbbbbbbbb"}"#, (8, 0)),
            (r#"{"serverVersion":"7.0.0","a":"bbbbbbbbbbbbbbbbb"}"#, (7, 0)),
            (r#"{"serverVersion":"7.10.0","a":"bbbbbbbbbbbbbbbbb"}"#, (7, 1)),
            ("", (8, 0)),
            ("serverVersion", (8, 0)),
            ("serverVersion is not said here 5.0 anywhere at all", (8, 0)),
        ] {
            assert_eq!(of_page(page.as_bytes()).since, since, "{page}");
        }
    }
}
