//! The keys of `player` of a cohort.

use std::time::Duration;

use serde_json::json;

use super::PlayerConfig;
use crate::keys::Usual::{LeftOut, Said};
use crate::keys::{
    By, Flag, Keyed, Maybe, Parsed, Problem, SEED_MAX, Whole, Word, keys, time, time_schema,
};
use crate::playback::{AtEnd, PlaybackPosition, UserHabits};
use crate::read::{Fields, Reader, har, http, peers};
use crate::units;

/// Shortest buffer: below it a player could not hide the gap between two requests.
const BUFFER_MIN: Duration = Duration::from_millis(500);
/// Longest buffer.
const BUFFER_MAX: Duration = Duration::from_secs(3_600);
/// Shortest mean time between actions of the user.
const EVERY_MIN: Duration = Duration::from_secs(1);

impl Keyed for PlayerConfig {
    const NAME: &'static str = "PlayerFile";
    const MEANING: &'static str = "How viewers of recordings play; on RTSP only `position`, \
        `seek_every`, `pause_every`, `pause_for`, `scale`, `repeat` and `seed`.";

    keys! {
        /// `file`, `hls` or `dash`, where the end of the URL's path does not tell
        "format": format = Word, LeftOut;
        /// a [version of HTTP](http-client.md#versions) for all viewers, or a table of weights
        "http": http = http::VERSIONS, Said("`\"negotiated\"`");
        /// further headers of requests to the target's host, such as `{ X-Session = "env:SESSION"
        /// }`; a value may be `env:NAME` or `file:PATH`
        "headers": headers = http::HEADERS, Said("none");
        /// the URL of the page that the player is embedded in, of `http` or `https`: `Origin`,
        /// `Referer`, preflights
        "page": page = Maybe(http::PAGE), Said("a page of the media's origin");
        /// the page around the player: a HAR file, with its path from the folder of the scenario
        /// file
        "har": recorded_page = Maybe(har::HAR), Said("no page");
        /// share of viewers whose cache is warm, from 0 to 1
        "warm": recorded_page = Maybe(har::WARM), Said("`0`");
        /// how long before their visit warm caches were filled
        "warm_age": recorded_page = Maybe(har::WARM_AGE), Said("`\"0s\"`");
        /// where requests of recorded origins go: `{ "https://static.example" =
        /// "http://127.0.0.1:8080" }`
        "origins": recorded_page = Maybe(har::ORIGINS), Said("the page's origin is the target's");
        /// with which requests cookies are sent, and of which responses they are kept:
        /// `same-origin`, `include` or `omit`
        "credentials": credentials = Word, LeftOut;
        /// media kept ahead of the playback position
        "buffer": buffer = time("30s"), LeftOut;
        /// media that must be there before playback begins, and to go on after a stall or a seek
        "start": start = time("1s"), LeftOut;
        /// where playback begins: a time, or `random`
        "position": position = POSITION, Said("the beginning");
        /// mean time between seeks to random positions (a Poisson process)
        "seek_every": habits = SEEK_EVERY, Said("no seeks");
        /// mean time between pauses
        "pause_every": habits = PAUSE_EVERY, Said("no pauses");
        /// length of a pause
        "pause_for": habits = PAUSE_FOR, Said("`\"10s\"`");
        /// the speed that is asked of an RTSP server, such as 2, 0.5 or -1 (backwards)
        "scale": scale_milli = SCALE, LeftOut;
        /// a user who waits longer for playback to begin or go on gives up: a failure, `no_media`
        "patience": patience = Maybe(time("30s")), Said("for ever");
        /// plays again from the beginning at the end, so that the load stays; else the viewer
        /// leaves
        "repeat": at_end = REPEAT, LeftOut;
        /// of HLS and DASH: `lowest`, `highest`, or the best that the download rate allows
        "rendition": rendition = Word, LeftOut;
        /// of HLS and DASH: the shorter side of the picture that the player has room for, `"360p"`.
        /// No rendition is played that is larger than the smallest one that fills it (hls.js
        /// `capLevelToPlayerSize`)
        "screen": screen_lines = Maybe(SCREEN), Said("any size is played");
        /// distance behind the end of the stream at which playback begins
        "latency": live.latency = Maybe(time("20s")),
            Said("what the server asks for, else 3 target durations");
        /// a player that is further behind jumps forward (hls.js `liveMaxLatencyDuration`)
        "latency_max": live.latency_max = Maybe(time("60s")), Said("none");
        /// segments in parts and blocking playlist requests, where the server offers them
        "low_latency": live.low_latency = Flag, LeftOut;
        /// requests the next part before it exists (`EXT-X-PRELOAD-HINT`), as Safari does; hls.js
        /// does not
        "preload_hints": live.preload_hints = Flag, LeftOut;
        /// fastest playback of a low-latency stream that is behind, from 1 to 2 (hls.js
        /// `maxLiveSyncPlaybackRate`)
        "catch_up": live.catch_up_milli = CATCH_UP, LeftOut;
        /// [peer-to-peer delivery](peers.md) between viewers of HLS
        "p2p": peers = Maybe(peers::PEERS), Said("none");
        /// of all that is random; each viewer draws its own
        "seed": seed = Whole(0, SEED_MAX), LeftOut;
    }

    fn usual() -> Self {
        Self::default()
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        http::check_page(reader, fields, self);
        check_times(reader, fields, self);
        check_live(reader, fields, self);
    }
}

const POSITION: Parsed<PlaybackPosition> = Parsed {
    kind: "\"random\", or a time",
    example: "90s",
    parse: |text| match text {
        "random" => Ok(PlaybackPosition::Random),
        text => units::duration(text).map(PlaybackPosition::At).map_err(|error| {
            let help = "write position = \"random\", or a time such as \"90s\"";
            Problem::new(format!(": {error}"), help)
        }),
    },
    write: |position| match position {
        PlaybackPosition::Random => "random".into(),
        PlaybackPosition::At(time) => units::write_duration(*time),
    },
    schema: |generator| json!({ "anyOf": [{ "const": "random" }, time_schema(generator)] }),
    is_removable: false,
};

/// With this key the others of the user's habits are read.
const SEEK_EVERY: By<UserHabits> = By {
    read: |reader, fields, _| {
        let mut time = |key: &'static str, example: &str| {
            reader.quantity(fields, key, example, units::duration)
        };
        Some(UserHabits {
            seek_every: time("seek_every", "60s"),
            pause_every: time("pause_every", "120s"),
            pause_for: time("pause_for", "10s").unwrap_or(PlayerConfig::default().habits.pause_for),
        })
    },
    write: |habits| Some(units::write_duration(habits.seek_every?).into()),
    schema: time_schema,
};

const PAUSE_EVERY: By<UserHabits> = By {
    read: |_, _, _| None,
    write: |habits| Some(units::write_duration(habits.pause_every?).into()),
    schema: time_schema,
};

const PAUSE_FOR: By<UserHabits> = By {
    read: |_, _, _| None,
    write: |habits| habits.pause_every.map(|_| units::write_duration(habits.pause_for).into()),
    schema: time_schema,
};

/// The shorter side of a picture.
const SCREEN: Parsed<u32> = Parsed {
    kind: "a size",
    example: "360p",
    parse: |text| {
        let is_number = |digits: &&str| {
            let is_short = (1..=4).contains(&digits.len()) && !digits.starts_with('0');
            is_short && digits.bytes().all(|digit| digit.is_ascii_digit())
        };
        let lines = text.strip_suffix('p').filter(is_number).and_then(|it| it.parse().ok());
        lines.ok_or_else(|| " is not a size such as \"360p\"".into())
    },
    write: |lines| format!("{lines}p"),
    schema: |_| json!({ "type": "string", "pattern": "^[1-9][0-9]{0,3}p$" }),
    is_removable: false,
};

/// The speed asked of the server, in thousandths of the normal one.
const SCALE: By<i32> = By {
    read: |reader, fields, key| {
        let is_one = |number: f64| (0.001..=1_000.0).contains(&number.abs());
        let words = ("a speed such as 2, 0.5 or -1", "write scale = 2.0");
        reader.number(fields, key, is_one, words).map(|number| (number * 1e3).round() as i32)
    },
    write: |milli| Some((f64::from(*milli) / 1e3).into()),
    schema: |_| {
        json!({ "type": "number", "anyOf": [
            { "minimum": -1_000, "maximum": -0.001 },
            { "minimum": 0.001, "maximum": 1_000 },
        ] })
    },
};

/// The fastest playback, in thousandths of the normal speed.
const CATCH_UP: By<u32> = By {
    read: |reader, fields, key| {
        let is_one = |number: f64| (1.0..=2.0).contains(&number);
        let words = ("a speed from 1 to 2", "write catch_up = 1.5");
        reader.number(fields, key, is_one, words).map(|number| (number * 1e3).round() as u32)
    },
    write: |milli| Some((f64::from(*milli) / 1e3).into()),
    schema: |_| json!({ "type": "number", "minimum": 1, "maximum": 2 }),
};

const REPEAT: By<AtEnd> = By {
    read: |reader, fields, key| {
        Some(if reader.boolean(fields, key)? { AtEnd::Repeat } else { AtEnd::Leave })
    },
    write: |at_end| Some((*at_end == AtEnd::Repeat).into()),
    schema: |_| json!({ "type": "boolean" }),
};

/// Times of recordings, against each other.
fn check_times(reader: &mut Reader, fields: &mut Fields<'_>, config: &PlayerConfig) {
    if !(BUFFER_MIN..=BUFFER_MAX).contains(&config.buffer) {
        let message = format!("`{}` must be from 0.5 s to 1 h", fields.path_of("buffer"));
        reader.fail(fields.span_of("buffer"), message, "write buffer = \"30s\"");
    }
    if config.start > config.buffer {
        let message = format!(
            "`{}` is longer than the buffer: playback would never begin",
            fields.path_of("start")
        );
        let span = fields.span_of("start").or(fields.span_of("buffer"));
        reader.fail(span, message, "write a shorter start, or a longer buffer");
    }
    for (key, every) in
        [("seek_every", config.habits.seek_every), ("pause_every", config.habits.pause_every)]
    {
        if every.is_some_and(|every| every < EVERY_MIN) {
            let message = format!("`{}` is less than 1 s", fields.path_of(key));
            reader.fail(fields.span_of(key), message, format!("write {key} = \"60s\""));
        }
    }
    if config.habits.pause_every.is_none()
        && let Some(span) = fields.span_of("pause_for")
    {
        let message =
            format!("`{}` has no effect without pause_every", fields.path_of("pause_for"));
        reader.fail(span, message, "add pause_every = \"120s\", or remove it");
    }
}

/// How live streams are followed.
fn check_live(reader: &mut Reader, fields: &mut Fields<'_>, config: &PlayerConfig) {
    let Some(latency) = config.live.latency else { return };
    if config.live.latency_max.is_some_and(|latency_max| latency_max <= latency) {
        let message = format!("`{}` is not longer than latency", fields.path_of("latency_max"));
        let help = "write a longer latency_max, or a shorter latency";
        reader.fail(fields.span_of("latency_max"), message, help);
    }
    if latency.is_zero() {
        let message =
            format!("`{}` is 0: what is not there yet cannot be played", fields.path_of("latency"));
        reader.fail(fields.span_of("latency"), message, "write latency = \"20s\", or remove it");
    }
}
