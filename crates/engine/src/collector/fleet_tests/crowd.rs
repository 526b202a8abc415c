//! The crowd: who joins when and where, which worker plays it, and how it ends.

use throng_observation::run::{CohortId, ParticipantId};
use throng_observation::{Failure, FailureReason, Outcome, Phase, RunTime};

use crate::config::Join;

pub(super) const S: i64 = 1_000_000;

/// Participants of the crowd.
pub(super) const PEOPLE: u32 = 60;
/// The planned end.
pub(super) const ENDS_AT: RunTime = RunTime(40 * S);

pub(super) const WORKERS: u32 = 3;

/// When the last participants of each share have left. A worker ends then, the first one long
/// before the others; one process ends with the last of all.
pub(super) const ENDED_AT: [RunTime; WORKERS as usize] =
    [RunTime(26_900_000), RunTime(40_540_000), RunTime(41_280_000)];

/// This one is due just before the end, and its join never begins. What became of it is unknown as
/// of the end of its process, so it belongs to the share that ends last.
pub(super) const NEVER_BEGINS: u32 = 59;

pub(super) const SCENARIO: &str = r#"
objectives = ["video.loss p95 < 1%", "video.freeze p95 < 1%", "connect p95 < 3s", "startup p95 < 2s", "stall_ratio p95 < 1%",
    "chat.delivery p95 < 1s", "failed < 1%"]
[target]
url = "whep+http://127.0.0.1:5280/whep"
[run]
duration = "40s"
warm_up = "5s"
[[crowd]]
name = "viewers"
size = 24
[[crowd]]
name = "publishers"
size = 12
url = "whip+http://127.0.0.1:5280/whip"
[[crowd]]
name = "players"
size = 12
url = "http://127.0.0.1:5280/live.m3u8"
[[crowd]]
name = "chat"
size = 12
url = "xmpp+ws://127.0.0.1:5280/xmpp-websocket?room=stage@conference.localhost&domain=localhost"
"#;

pub(super) const COHORTS: [&str; 4] = ["viewers", "publishers", "players", "chat"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Viewer,
    Publisher,
    Player,
    Chat,
}

impl Role {
    /// Five and three have no common divisor: each share has all roles.
    pub(super) fn of(number: u32) -> Self {
        match number % 5 {
            0 | 1 => Self::Viewer,
            2 => Self::Publisher,
            3 => Self::Player,
            _ => Self::Chat,
        }
    }

    /// What it passes after it has started.
    pub(super) fn phases(self) -> &'static [Phase] {
        use Phase::{
            Connected, Described, DtlsConnected, FirstFrame, FirstPacket, IceConnected, Joined,
            Negotiated, PageLoaded, PlaybackStarted, Playing, Resolved, Secured,
        };
        match self {
            Self::Viewer => &[
                Resolved,
                Connected,
                Secured,
                Negotiated,
                IceConnected,
                DtlsConnected,
                FirstPacket,
                FirstFrame,
            ],
            Self::Publisher => {
                &[Resolved, Connected, Secured, Described, Negotiated, IceConnected, DtlsConnected]
            }
            Self::Player => &[
                Resolved,
                Connected,
                Secured,
                PageLoaded,
                Described,
                Playing,
                FirstPacket,
                FirstFrame,
                PlaybackStarted,
            ],
            Self::Chat => &[Resolved, Connected, Secured, Joined],
        }
    }
}

pub(super) fn join(number: u32) -> Join {
    let at = if number == NEVER_BEGINS { 39_990_000 } else { i64::from(number) * 400_000 };
    let stays_s = match worker_of(number) {
        0 if has_failed(number) => number.is_multiple_of(2).then_some(20),
        0 => Some(5),
        _ => number.is_multiple_of(7).then_some(9),
    };
    Join {
        participant: ParticipantId(number),
        cohort: CohortId(Role::of(number) as u16),
        place: number,
        at: RunTime(at),
        leave_at: stays_s.map(|stays_s| RunTime(at + stays_s * S)),
        others_follow: false,
        source_ip: None,
    }
}

/// The worker that plays a participant. The shares but the first have somebody who stays to the end
/// of the run. Of the first some that failed should be served after all others have left.
pub(super) fn worker_of(number: u32) -> usize {
    (number % WORKERS) as usize
}

/// The last phase that a participant can reach.
pub(super) fn last_phase(number: u32) -> Phase {
    match number {
        _ if number % 11 == 3 => Phase::Negotiated,
        _ if number % 13 == 5 => Phase::Secured,
        _ => Phase::Joined,
    }
}

/// Whether a participant fails.
fn has_failed(number: u32) -> bool {
    number % 11 == 3 || number % 13 == 5 || number % 17 == 6
}

/// When and how a participant ends.
pub(super) fn end_of(number: u32) -> (i64, Outcome) {
    let Join { at: RunTime(at), leave_at, .. } = join(number);
    let failed = |after_us: i64, reason: FailureReason, why: &str| {
        (at + after_us, Outcome::Failed(Failure::new(reason, format!("{why} ({number})"))))
    };
    match number {
        _ if number % 11 == 3 => {
            failed(1_300_000, FailureReason::Ice, "no pair of candidates works")
        }
        _ if number % 13 == 5 => {
            failed(150_000, FailureReason::HttpStatus(503), "the server is busy")
        }
        _ if number % 17 == 6 => {
            failed(8_200_000, FailureReason::MediaLost, "nothing came any more")
        }
        _ => {
            let ends_at = ENDED_AT[worker_of(number)].0 - 10_000;
            (leave_at.map_or(ends_at, |leave_at| leave_at.0 + 40_000), Outcome::Completed)
        }
    }
}
