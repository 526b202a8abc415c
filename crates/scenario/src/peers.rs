//! Peer-to-peer delivery between viewers, as p2p-media-loader does it in their browsers.

use std::time::Duration;

use schemars::SchemaGenerator;
use throng_observation::{Url, seed};

use crate::keys::Usual::{LeftOut, Said};
use crate::keys::{
    Address, Key, Keyed, Maybe, SEED_MAX, ShareMilli, Whole, Word, keys, named, text, time,
};
use crate::read::{Fields, Reader};

/// Most peers of a viewer with engine 4, unless the scenario says it.
const PEERS_MAX_V4: usize = 50;

/// How viewers get segments from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerConfig {
    /// Whose decisions are made.
    pub engine: PeerEngine,
    /// The tracker by which viewers find each other (WebTorrent over WebSocket); `None`: they know
    /// each other.
    pub tracker: Option<Url>,
    /// What names the swarms of the stream; `None`: the URL of its playlist. With
    /// [`PeerEngine::V4`] the UUID of the video.
    pub swarm: Option<String>,
    /// The `segments-sha256.json` of the stream, as PeerTube writes it: requested for each segment.
    pub hashes: Option<Url>,
    /// What each of them uploads at most, bits per second; `None`: as much as it is asked for.
    pub upload_bps: Option<u64>,
    /// The share of them that upload at all, thousandths: browsers on mobile networks do not.
    pub sharers_milli: u32,
    /// The share of pairs that cannot reach each other, thousandths: both are behind NAT, or a
    /// firewall.
    pub unreachable_milli: u32,
    /// The share of viewers that exchange segments over data channels, with each other and with
    /// browsers, thousandths.
    pub channels_milli: u32,
    /// Most peers of one viewer; `None`: as many as its engine allows ([`Self::degree_max`]).
    pub degree_max: Option<u32>,
    /// What is played within this time comes from the server (all engines but [`PeerEngine::V06`]);
    /// `None`: as PeerTube sets it, which differs for live streams and recordings.
    pub urgent: Option<Duration>,
    /// Peers are used from then on, since the start of the run.
    pub from: Duration,
    /// And until then.
    pub until: Option<Duration>,
    /// Seed of choices.
    pub seed: u64,
}

impl PeerConfig {
    /// Viewers with the uplinks and the reach of `preset`.
    #[must_use]
    pub fn preset(preset: PeerPreset) -> Self {
        let (upload_bps, sharers_milli, unreachable_milli) = preset.network();
        Self {
            engine: PeerEngine::default(),
            tracker: None,
            swarm: None,
            hashes: None,
            upload_bps,
            sharers_milli,
            unreachable_milli,
            channels_milli: 0,
            degree_max: None,
            urgent: None,
            from: Duration::ZERO,
            until: None,
            seed: seed::USUAL,
        }
    }

    /// Most peers of one viewer. Only engine 4 has a bound of its own; before, a viewer keeps
    /// everybody whom the tracker names.
    #[must_use]
    pub fn degree_max(&self) -> usize {
        let of_engine = match self.engine {
            PeerEngine::V4 => PEERS_MAX_V4,
            PeerEngine::V22 | PeerEngine::V23 | PeerEngine::V06 => usize::MAX,
        };
        self.degree_max.map_or(of_engine, |max| max as usize)
    }

    /// Whether viewer `number` uploads.
    #[must_use]
    pub fn shares(&self, number: u32) -> bool {
        self.draw(u64::from(number)) < self.sharers_milli
    }

    /// Whether viewers `a` and `b` can reach each other.
    #[must_use]
    pub fn reaches(&self, a: u32, b: u32) -> bool {
        let pair = u64::from(a.min(b)) << 32 | u64::from(a.max(b)) | 1 << 63;
        self.draw(pair) >= self.unreachable_milli
    }

    /// Whether viewer `number` exchanges segments over data channels.
    #[must_use]
    pub fn has_channels(&self, number: u32) -> bool {
        // What engine 4 says over data channels is not known here.
        self.engine != PeerEngine::V4
            && self.draw(u64::from(number) | 1 << 62) < self.channels_milli
    }

    /// Whether some viewers do.
    #[must_use]
    pub fn has_any_channels(&self) -> bool {
        self.engine != PeerEngine::V4 && self.channels_milli > 0
    }

    /// From 0 to 999, the same each time.
    fn draw(&self, of: u64) -> u32 {
        fastrand::Rng::with_seed(seed::of(self.seed, of)).u32(..1_000)
    }

    /// Whether peers are used at `at`, since the start of the run.
    #[must_use]
    pub fn is_on(&self, at: Duration) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}

/// Most of what a viewer can be said to upload, bits per second.
const UPLOAD_MAX: u64 = 100_000_000_000;
/// Most peers that a viewer can be said to have.
const DEGREE_MAX: u64 = 10_000;
/// Of a tracker.
const TRACKER: Address = Address { schemes: &["ws", "wss"], example: "wss://HOST/tracker/socket" };
/// Of a list of hashes.
const HASHES: Address =
    Address { schemes: &["http", "https"], example: "https://HOST/…/segments-sha256.json" };

impl Keyed for PeerConfig {
    const NAME: &'static str = "PeersFile";
    const MEANING: &'static str = "Peer-to-peer delivery between viewers.";

    keys! {
        /// whose decisions, by the version of p2p-media-loader: `2.2` (PeerTube 7.1 to 8), `2.3`
        /// (announces in time, see below), `4.0` (PeerTube 9: decides as 2.3, and `swarm` is the
        /// UUID of the video) or `0.6` (before)
        "engine": engine = Word, LeftOut;
        /// WebTorrent tracker over WebSocket, `wss://HOST/tracker/socket`
        "tracker": tracker = Maybe(TRACKER),
            Said("viewers know each other, five new ones every 120 s");
        /// what names the swarms
        "swarm": swarm = Maybe(text("a name", "live")),
            Said("the URL of the playlist");
        /// `segments-sha256.json` as PeerTube writes it: fetched until it names each segment
        "hashes": hashes = Maybe(HASHES), Said("none");
        /// what each uploads at most, bits per second
        "upload_bps": upload_bps = Maybe(Whole(1, UPLOAD_MAX)), Said("that of the preset");
        /// the share of viewers that upload at all, from 0 to 1
        "sharers": sharers_milli = ShareMilli("0.3"), Said("that of the preset");
        /// the share of pairs that cannot reach each other, from 0 to 1
        "unreachable": unreachable_milli = ShareMilli("0.3"), Said("that of the preset");
        /// the share of viewers that exchange segments over [WebRTC data channels](#data-channels),
        /// with each other and with browsers, from 0 to 1. Needs a tracker
        "data_channels": channels_milli = ShareMilli("0.05"), Said("`0`");
        /// most peers of one viewer
        "degree": degree_max = Maybe(Whole(1, DEGREE_MAX)),
            Said("50 with engine 4.0, which offers nothing when it has them; no bound with others");
        /// what is played within this time comes from the server (all engines but 0.6)
        "urgent": urgent = Maybe(time("4s")), Said("4 s, and 15 s of recordings, as PeerTube");
        /// peers are used from then on, since the start of the run: `"10m"`, to see both
        "from": from = time("10m"), Said("at once");
        /// and until then
        "until": until = Maybe(time("20m")), Said("to the end");
        /// of choices
        "seed": seed = Whole(0, SEED_MAX), LeftOut;
    }

    fn usual() -> Self {
        Self::preset(PeerPreset::default())
    }

    /// The preset says what holds where other keys are absent; what it stands for is written.
    fn by_hand(generator: &mut SchemaGenerator) -> Vec<Key> {
        let meaning = "uplinks and reach of the viewers: `lan` (all reach each other, no limit), \
                       `hosted`, `home`";
        vec![Key::new(("preset", LeftOut, meaning), &Word, &PeerPreset::default(), generator)]
    }

    fn check(&self, reader: &mut Reader, fields: &mut Fields<'_>) {
        if self.until.is_some_and(|until| until <= self.from) {
            let until = fields.path_of("until");
            let message = format!("`{until}` is not after from: peers would never be used");
            reader.fail(fields.span_of("until"), message, "write a later until, or remove it");
        }
        if let (PeerEngine::V4, None, Some(span)) =
            (self.engine, &self.swarm, fields.span_of("engine"))
        {
            let engine = fields.path_of("engine");
            let message =
                format!("`{engine}` names its swarms by the video, and there is no swarm");
            let help = "write swarm = \"UUID OF THE VIDEO\", or remove engine: a page of PeerTube \
                        says both";
            reader.fail(span, message, help);
        }
    }
}

/// A version of p2p-media-loader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerEngine {
    /// 2.2, of PeerTube 7.1 to 8. What a viewer announces lags behind by one announcement: the list
    /// of what it has is made before the segment that has come is kept (`getSegmentsAnnouncement`
    /// of 2.2.2).
    #[default]
    V22,
    /// 2.3: it decides as 2.2, and announces what it has.
    V23,
    /// 4.0, of PeerTube 9: it decides as 2.3, and its swarms have the name of the video and of its
    /// resolution.
    V4,
    /// 0.6.2, of PeerTube up to 7.0.
    V06,
}

named! { PeerEngine: V22 = "2.2", V23 = "2.3", V4 = "4.0", V06 = "0.6" }

/// Uplinks and reach of the viewers of a known event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerPreset {
    /// All reach each other, at the speed of a local network.
    #[default]
    Lan,
    /// Server-like uplinks, of which a part does not share: three quarters of the media came from
    /// peers.
    Hosted,
    /// Home and mobile connections: about half of the media came from peers.
    Home,
}

named! { PeerPreset: Lan = "lan", Hosted = "hosted", Home = "home" }

impl PeerPreset {
    /// Upload of each viewer, share of those that upload, share of pairs that cannot reach each
    /// other.
    fn network(self) -> (Option<u64>, u32, u32) {
        match self {
            Self::Lan => (None, 1_000, 0),
            Self::Hosted => (Some(7_500_000), 500, 500),
            Self::Home => (Some(5_000_000), 500, 500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_engine_4_bounds_the_peers_of_a_viewer_by_itself() {
        let of = |engine, degree_max| {
            PeerConfig { engine, degree_max, ..PeerConfig::preset(PeerPreset::Lan) }.degree_max()
        };
        assert_eq!((of(PeerEngine::V4, None), of(PeerEngine::V4, Some(8))), (50, 8));
        assert_eq!(
            (of(PeerEngine::V22, None), of(PeerEngine::V06, None)),
            (usize::MAX, usize::MAX)
        );
        assert_eq!(of(PeerEngine::V22, Some(8)), 8);
    }

    #[test]
    fn shares_are_those_of_many_and_the_same_each_time() {
        let config = PeerConfig::preset(PeerPreset::Home);
        let sharers = (0..10_000).filter(|number| config.shares(*number)).count();
        assert!((4_800..5_200).contains(&sharers), "{sharers}");
        let apart = (1..10_000).filter(|number| !config.reaches(0, *number)).count();
        assert!((4_800..5_200).contains(&apart), "{apart}");
        assert!((1..100).all(|number| config.reaches(number, 7) == config.reaches(7, number)));
    }
}
