//! What a user received and requested each second, measured where it arrived, while the crowd was
//! served well.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::RunData;
use throng_observation::{Goal, Received};

use super::Estimate;
use crate::demand::growth::Growth;
use crate::demand::{FittedUse, t_975};
use crate::windows::{Windows, second_range};

/// Seconds that are one observation: neighbouring seconds are not independent (key frames,
/// segments).
const BLOCK_S: i64 = 10;
/// Least observations for an interval.
const BLOCKS_MIN: usize = 3;

/// Something that a user caused each second, with its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerUser {
    /// Per user and second, with the 95 % interval.
    pub per_second: Estimate,
    /// User-seconds behind it.
    pub user_seconds: f64,
    /// Blocks of ten seconds behind its interval; below three the interval is the figure itself.
    pub blocks: u32,
}

/// What users received and requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Bytes received: RTP with the SRTP tag, UDP and IP headers; of players the bodies of
    /// responses, without headers.
    pub received_bytes: PerUser,
    /// HTTP requests of players; `null` without players.
    pub requests: Option<PerUser>,
    /// The most users that received media in a second of it.
    pub users_max: f64,
    /// Whether only loads that were served well count; otherwise the whole run, because none is
    /// known.
    pub is_of_good_service: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    users: f64,
    bytes: f64,
    requests: f64,
}

impl Traffic {
    /// The traffic of the loads that passed; of the whole run if none did. `None` if nothing
    /// arrived.
    #[must_use]
    pub fn of(run: &RunData, goal: Goal) -> Option<Self> {
        let windows = Windows::of(run, goal);
        let ranges: Vec<_> = windows.passed.iter().map(|load| second_range(load.window)).collect();
        let good = seconds(run, |second| ranges.iter().any(|range| range.contains(&second)));
        let is_of_good_service = good.values().any(|second| second.bytes > 0.0);
        let seconds = if is_of_good_service { good } else { seconds(run, |_| true) };
        let received_bytes = per_user(&seconds, |second| second.bytes)?;
        let has_players = run.playback.iter().any(|row| row.counters.requests > 0);
        let requests = has_players.then(|| per_user(&seconds, |second| second.requests)).flatten();
        let users_max = seconds.values().map(|second| second.users).fold(0.0, f64::max);
        (received_bytes.per_second.value > 0.0).then_some(Self {
            received_bytes,
            requests,
            users_max,
            is_of_good_service,
        })
    }

    /// The line that the server needs at least, in proportion to the users.
    pub(super) fn growth(&self) -> Option<Growth> {
        let Estimate { value, low, high } = self.received_bytes.per_second;
        let freedom = self.received_bytes.blocks.saturating_sub(1);
        let error = (high - low) / 2.0 / t_975(usize::try_from(freedom).unwrap_or(usize::MAX));
        let mut covariance = [[0.0; 3]; 3];
        covariance[1][1] = error * error;
        Growth::of_fit(
            "received by the users",
            FittedUse {
                coefficients: [0.0, value, 0.0],
                covariance,
                freedom,
                users_min: 0.0,
                users_max: self.users_max,
            },
        )
    }
}

fn seconds(run: &RunData, counts: impl Fn(i64) -> bool) -> BTreeMap<i64, Second> {
    let mut seconds: BTreeMap<i64, Second> = BTreeMap::new();
    for row in run.crowd.iter().filter(|row| counts(row.second)) {
        seconds.entry(row.second).or_default().users += f64::from(row.playing);
    }
    // Without a user that received or played it, traffic is none of a viewer's.
    seconds.retain(|_, second| second.users > 0.0);
    // Without the chat: the price of what a chat sends is made by itself, from its messages, and
    // would be paid twice.
    for (at, bytes) in Received::of(&run.series, &run.playback, &[]).by_second() {
        if let Some(second) = seconds.get_mut(&at) {
            second.bytes += bytes as f64;
        }
    }
    for row in &run.playback {
        if let Some(second) = seconds.get_mut(&row.second) {
            second.requests += row.counters.requests as f64;
        }
    }
    seconds
}

/// A ratio of sums, with its interval by the linearised variance of ratio estimators (Cochran,
/// Sampling Techniques, 6.3) over blocks of seconds.
fn per_user(seconds: &BTreeMap<i64, Second>, amount: impl Fn(&Second) -> f64) -> Option<PerUser> {
    let mut blocks: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (second, of) in seconds {
        let (users, sum) = blocks.entry(second.div_euclid(BLOCK_S)).or_default();
        *users += of.users;
        *sum += amount(of);
    }
    let users: f64 = blocks.values().map(|(users, _)| users).sum();
    let value = blocks.values().map(|(_, sum)| sum).sum::<f64>() / users;
    if !value.is_finite() {
        return None;
    }
    let n = blocks.len() as f64;
    let squares: f64 = blocks.values().map(|(users, sum)| (sum - value * users).powi(2)).sum();
    let half = if blocks.len() < BLOCKS_MIN {
        0.0
    } else {
        (squares * n / (n - 1.0)).sqrt() / users * t_975(blocks.len() - 1)
    };
    Some(PerUser {
        per_second: Estimate { value, low: (value - half).max(0.0), high: value + half },
        user_seconds: users,
        blocks: u32::try_from(blocks.len()).unwrap_or(u32::MAX),
    })
}
