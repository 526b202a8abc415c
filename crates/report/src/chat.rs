//! The participants of a chat added up.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::RunData;
use throng_observation::{ChatRow, SecondRow as _};

use crate::survival::TimeTo;
use throng_observation::units::{bytes, duration_ms, percent};

/// The chat of a run. Joins cover the whole run, the other figures leave the warm-up out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chat {
    /// Most participants that were in a room in the same second.
    pub joined_max: u64,
    /// Most others that one of them saw in its room.
    pub occupants_max: u64,
    /// Intended join to being in the room.
    pub joined: TimeTo,
    /// From the intended time of a message to its arrival at each participant: the median,
    /// milliseconds. Both are by this host's clock. `null` when nothing arrived.
    pub delivery_ms_p50: Option<f64>,
    /// 95th percentile of the same.
    pub delivery_ms_p95: Option<f64>,
    /// 99th percentile of the same.
    pub delivery_ms_p99: Option<f64>,
    /// The slowest.
    pub delivery_ms_max: Option<f64>,
    /// Messages of this run that were due to participants and settled, added up over participants.
    pub messages_due: u64,
    /// Of them, those that did not come within 10 s.
    pub messages_missing: u64,
    /// The same as a share; `null` when none was due.
    pub missing_ratio: Option<f64>,
    /// Messages that came to a participant more than once.
    pub duplicates: u64,
    /// Messages that came to a participant before one that the same participant had said earlier.
    pub out_of_order: u64,
    /// Messages that participants said.
    pub messages_sent: u64,
    /// Messages that were to be said by participants that were not in the room at the time.
    pub messages_unsent: u64,
    /// Frames received.
    pub stanzas_received: u64,
    /// Of them, presences.
    pub presences_received: u64,
    /// vCards received.
    pub vcards_received: u64,
    /// Bytes of the frames received, without those of WebSocket and below.
    pub bytes_received: u64,
    /// Bytes of the frames sent.
    pub bytes_sent: u64,
    /// Times that participants connected again.
    pub reconnects: u64,
    /// Of them, those after which the stream went on (XEP-0198): the server delivered what it had
    /// kept.
    pub resumes: u64,
    /// Times that a nickname changed in a room.
    pub nick_changes: u64,
}

/// The chat of a run added up, warm-up left out.
#[derive(Debug, Default)]
pub(crate) struct ChatFigures {
    pub(crate) window: ChatRow,
    joined_max: u64,
    is_there: bool,
}

impl ChatFigures {
    pub(crate) fn of(run: &RunData, seconds: &Range<i64>) -> Self {
        let mut figures = Self { is_there: !run.chat.is_empty(), ..Self::default() };
        let (mut second, mut joined) = (i64::MIN, 0);
        for row in run.chat.iter().filter(|row| seconds.contains(&row.second)) {
            figures.window.add(row);
            joined = if row.second == second { joined } else { 0 } + u64::from(row.joined);
            second = row.second;
            figures.joined_max = figures.joined_max.max(joined);
        }
        figures
    }

    /// The summary; `None` where there is no chat.
    pub(crate) fn summary(&self, joined: TimeTo) -> Option<Chat> {
        let counters = &self.window.counters;
        // Of those that came: what is missing has its own figures.
        let ms = |quantile| self.window.delay_us.quantile_in(quantile, 1e3);
        self.is_there.then(|| Chat {
            joined_max: self.joined_max,
            occupants_max: self.window.occupants_max.into(),
            joined,
            delivery_ms_p50: ms(0.5),
            delivery_ms_p95: ms(0.95),
            delivery_ms_p99: ms(0.99),
            delivery_ms_max: ms(1.0),
            messages_due: counters.messages_due,
            messages_missing: counters.messages_missing,
            missing_ratio: counters.missing_ratio(),
            duplicates: counters.duplicates,
            out_of_order: counters.out_of_order,
            messages_sent: counters.messages_sent,
            messages_unsent: counters.messages_unsent,
            stanzas_received: counters.stanzas_received,
            presences_received: counters.presences_received,
            vcards_received: counters.vcards_received,
            bytes_received: counters.bytes_received,
            bytes_sent: counters.bytes_sent,
            reconnects: counters.reconnects,
            resumes: counters.resumes,
            nick_changes: counters.nick_changes,
        })
    }
}

impl Chat {
    /// What was sent and what came of it, in a line.
    pub(crate) fn messages_line(&self) -> String {
        let mut parts = vec![format!("{} sent", self.messages_sent)];
        if let (Some(p50), Some(p95), Some(max)) =
            (self.delivery_ms_p50, self.delivery_ms_p95, self.delivery_ms_max)
        {
            let (p50, p95, max) = (duration_ms(p50), duration_ms(p95), duration_ms(max));
            parts.push(format!("delivered in p50 {p50}, p95 {p95}, at most {max}"));
        }
        let missing = match self.missing_ratio {
            Some(ratio) if self.messages_missing > 0 => {
                format!(
                    "{} of {} missing ({})",
                    self.messages_missing,
                    self.messages_due,
                    percent(ratio)
                )
            }
            _ => format!("none of {} missing", self.messages_due),
        };
        parts.push(missing);
        for (count, what) in [
            (self.duplicates, "came twice"),
            (self.out_of_order, "out of order"),
            (self.messages_unsent, "not sent, as their chatter was in no room"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join("; ")
    }

    /// What went over the wire for it, in a line.
    pub(crate) fn stanzas_line(&self) -> String {
        let mut parts = vec![format!(
            "{} received in {} protocol messages, {} of them presences, {} vCards",
            bytes(self.bytes_received as f64),
            self.stanzas_received,
            self.presences_received,
            self.vcards_received
        )];
        if self.nick_changes > 0 {
            parts.push(format!("{} nicknames changed", self.nick_changes));
        }
        if self.resumes > 0 {
            parts.push(format!("{} reconnects, {} of them resumed", self.reconnects, self.resumes));
        } else if self.reconnects > 0 {
            parts.push(format!("{} reconnects", self.reconnects));
        }
        parts.join("; ")
    }
}
