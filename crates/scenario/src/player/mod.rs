//! The player of viewers of recordings: what it requests, how much it buffers, and what its user
//! does.

use std::time::Duration;

use throng_observation::{Url, seed};

use crate::http::{CredentialsPolicy, HttpMix};
use crate::keys::named;
use crate::peers::PeerConfig;
use crate::playback::{
    AtEnd, PlaybackAction, PlaybackPosition, PlaybackScript, PlaybackStep, UserHabits,
};
use crate::recorded_page::RecordedPage;
use crate::secret::TokenSource;

mod keys;

/// The settings of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerConfig {
    /// What the URL names.
    pub format: MediaFormat,
    /// The versions of HTTP.
    pub http: HttpMix,
    /// Further headers of requests, with their values, which may be secrets.
    pub headers: Vec<(String, TokenSource)>,
    /// The page that the player is embedded in, which decides what is another origin; `None`: one
    /// of the media's origin.
    pub page: Option<Url>,
    /// The page that is loaded before the player begins.
    pub recorded_page: Option<RecordedPage>,
    /// With which requests cookies are sent.
    pub credentials: CredentialsPolicy,
    /// Media time that the player keeps ahead of the playback position; it pauses its download
    /// above.
    pub buffer: Duration,
    /// Media time that must be buffered before playback begins, and before it begins again after a
    /// stall or a seek.
    pub start: Duration,
    /// Where in the media playback begins.
    pub position: PlaybackPosition,
    /// How often the user seeks and pauses.
    pub habits: UserHabits,
    /// The speed that is asked of an RTSP server (RFC 2326 section 12.34), in thousandths of the
    /// normal one; negative: backwards.
    pub scale_milli: i32,
    /// How long the user waits for playback to begin, or to go on after a stall, before giving up:
    /// a failure. `None`: for ever.
    pub patience: Option<Duration>,
    /// What the viewer does when the media ends.
    pub at_end: AtEnd,
    /// Which of several renditions (HLS, DASH) is played.
    pub rendition: RenditionPolicy,
    /// The shorter side of the picture that the player has room for, pixels; `None`: renditions of
    /// any size are played.
    pub screen_lines: Option<u32>,
    /// How live streams are followed.
    pub live: LivePolicy,
    /// How viewers get segments from each other; `None`: all from the server.
    pub peers: Option<PeerConfig>,
    /// Seed of random positions and times.
    pub seed: u64,
}

/// The normal speed.
pub(crate) const NORMAL_SCALE_MILLI: i32 = 1_000;

/// Actions of a user are drawn for a stay of this length.
const DRAWN_FOR: Duration = Duration::from_secs(86_400);

impl PlayerConfig {
    /// What viewer `number` on RTSP does besides playing.
    #[must_use]
    pub fn script(&self, number: u32) -> PlaybackScript {
        let seed = seed::of(self.seed, u64::from(number));
        let mut script = PlaybackScript::drawn(self.position, self.habits, DRAWN_FOR, seed);
        script.at_end = self.at_end;
        if self.scale_milli != NORMAL_SCALE_MILLI {
            let action = PlaybackAction::Scale(f64::from(self.scale_milli) / 1e3);
            script.steps.insert(0, PlaybackStep { at: Duration::ZERO, action });
        }
        script
    }
}

impl Default for PlayerConfig {
    fn default() -> Self {
        Self {
            format: MediaFormat::Auto,
            http: HttpMix::default(),
            headers: Vec::new(),
            page: None,
            recorded_page: None,
            credentials: CredentialsPolicy::default(),
            // hls.js maxBufferLength; dash.js and browsers' own players keep between 10 and 60 s.
            buffer: Duration::from_secs(30),
            start: Duration::from_secs(1),
            position: PlaybackPosition::default(),
            habits: UserHabits {
                seek_every: None,
                pause_every: None,
                pause_for: Duration::from_secs(10),
            },
            scale_milli: NORMAL_SCALE_MILLI,
            patience: None,
            at_end: AtEnd::Repeat,
            rendition: RenditionPolicy::Adaptive,
            screen_lines: None,
            live: LivePolicy::default(),
            peers: None,
            seed: seed::USUAL,
        }
    }
}

/// How a player follows a live stream (HLS, DASH).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePolicy {
    /// Distance from the end of the stream at which to play; `None`: what the server asks for, else
    /// three target durations.
    pub latency: Option<Duration>,
    /// The same in target durations of the stream, where the player counts so
    /// (`liveSyncDurationCount` of hls.js).
    pub segments_behind: Option<u32>,
    /// A player that is further behind jumps forward; `None`: only when what comes next has left
    /// the playlist.
    pub latency_max: Option<Duration>,
    /// Segments are played in parts, and playlists requested before they change, where the server
    /// offers both (LL-HLS).
    pub low_latency: bool,
    /// The next part is requested before it exists (`EXT-X-PRELOAD-HINT`), as Safari does; hls.js
    /// does not.
    pub preload_hints: bool,
    /// Fastest playback, thousandths of the normal speed, while a low-latency stream is further
    /// behind than wanted.
    pub catch_up_milli: u32,
}

impl Default for LivePolicy {
    /// As hls.js.
    fn default() -> Self {
        Self {
            latency: None,
            segments_behind: None,
            latency_max: None,
            low_latency: true,
            preload_hints: false,
            catch_up_milli: NORMAL_SCALE_MILLI.unsigned_abs(),
        }
    }
}

/// What a URL names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaFormat {
    /// By the end of the URL's path: `.m3u8` is HLS, `.mpd` is DASH, everything else a file.
    #[default]
    Auto,
    /// A media file, downloaded progressively.
    File,
    /// An HLS playlist (RFC 8216).
    Hls,
    /// A DASH manifest (ISO/IEC 23009-1).
    Dash,
}

named! { MediaFormat: Auto = "auto", File = "file", Hls = "hls", Dash = "dash" }

impl MediaFormat {
    /// The format of what has this path: never [`Self::Auto`].
    #[must_use]
    pub fn of_path(self, path: &str) -> Self {
        let ends = |ending: &str| {
            path.len() >= ending.len() && path.to_ascii_lowercase().ends_with(ending)
        };
        match self {
            Self::Auto if ends(".m3u8") => Self::Hls,
            Self::Auto if ends(".mpd") => Self::Dash,
            Self::Auto => Self::File,
            format => format,
        }
    }
}

/// Which rendition is played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenditionPolicy {
    /// The best one that the measured download rate allows.
    #[default]
    Adaptive,
    /// The one with the lowest bitrate.
    Lowest,
    /// The one with the highest bitrate.
    Highest,
}

named! { RenditionPolicy: Adaptive = "adaptive", Lowest = "lowest", Highest = "highest" }
