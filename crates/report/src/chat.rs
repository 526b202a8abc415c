//! The participants of a chat added up.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_observation::run::RunData;
use throng_observation::units::{bytes, duration_ms, percent};
use throng_observation::{ChatCounters, ChatRow, SecondRow as _};

use crate::sums::summed;
use crate::survival::TimeTo;

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
    /// What was counted.
    #[serde(flatten)]
    pub sums: ChatSums,
}

summed! {
    /// Sums over the participants of a chat, warm-up left out.
    ChatSums of ChatCounters {
        messages_due;
        messages_missing;
        /// The same as a share; `null` when none was due.
        missing_ratio: Option<f64> = ChatCounters::missing_ratio;
        duplicates;
        out_of_order;
        messages_sent;
        messages_unsent;
        #[serde(alias = "stanzas_received")] frames_received;
        presences_received;
        vcards_received;
        bytes_received;
        bytes_sent;
        reconnects;
        resumes;
        nick_changes;
    }
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
            sums: ChatSums::of(&self.window.counters),
        })
    }
}

impl Chat {
    /// What was sent and what came of it, in a line.
    pub(crate) fn messages_line(&self) -> String {
        let sums = &self.sums;
        let mut parts = vec![format!("{} sent", sums.messages_sent)];
        if let (Some(p50), Some(p95), Some(max)) =
            (self.delivery_ms_p50, self.delivery_ms_p95, self.delivery_ms_max)
        {
            let (p50, p95, max) = (duration_ms(p50), duration_ms(p95), duration_ms(max));
            parts.push(format!("delivered in p50 {p50}, p95 {p95}, at most {max}"));
        }
        let missing = match sums.missing_ratio {
            Some(ratio) if sums.messages_missing > 0 => {
                format!(
                    "{} of {} missing ({})",
                    sums.messages_missing,
                    sums.messages_due,
                    percent(ratio)
                )
            }
            _ => format!("none of {} missing", sums.messages_due),
        };
        parts.push(missing);
        for (count, what) in [
            (sums.duplicates, "came twice"),
            (sums.out_of_order, "out of order"),
            (sums.messages_unsent, "not sent, as their chatter was in no room"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        parts.join("; ")
    }

    /// What went over the wire for it, in a line.
    pub(crate) fn frames_line(&self) -> String {
        let sums = &self.sums;
        let mut parts = vec![format!(
            "{} received in {} protocol messages, {} of them presences, {} vCards",
            bytes(sums.bytes_received as f64),
            sums.frames_received,
            sums.presences_received,
            sums.vcards_received
        )];
        if sums.nick_changes > 0 {
            parts.push(format!("{} nicknames changed", sums.nick_changes));
        }
        if sums.resumes > 0 {
            parts.push(format!("{} reconnects, {} of them resumed", sums.reconnects, sums.resumes));
        } else if sums.reconnects > 0 {
            parts.push(format!("{} reconnects", sums.reconnects));
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_by_the_name_that_they_had_in_earlier_summaries() {
        let sums = ChatSums { frames_received: 5, bytes_received: 7, ..ChatSums::default() };
        let json = serde_json::to_string(&sums).unwrap();
        let earlier = json.replace("\"frames_received\"", "\"stanzas_received\"");
        assert_ne!(earlier, json);
        assert_eq!(serde_json::from_str::<ChatSums>(&earlier).unwrap(), sums);
    }
}
