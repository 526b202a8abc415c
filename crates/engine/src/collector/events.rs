//! Rows of events, of each kind so many.

use std::time::Instant;

use throng_observation::run::{ADDRESS_EVENT, EventRow, Row};
use throng_observation::{Detail, Failure, MediaPath, Outcome, RunTime};
use throng_scenario::Secret;

use super::{Collector, CollectorConfig, snapshot};

/// Event rows of one kind, since a hostile server can cause endless anomalies. One row at the end
/// counts the rest.
const EVENTS_OF_A_KIND_MAX: u32 = 1000;

impl CollectorConfig {
    /// A text without the secrets that servers were told.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        throng_protocol::without_secrets(text, self.secrets.iter().map(Secret::expose))
    }
}

impl Collector {
    pub(super) fn event(&mut self, id: u32, at: Instant, kind: &str, detail: impl Into<Detail>) {
        if self.is_counted_only(kind) {
            return;
        }
        let detail = self.without_secrets(detail.into());
        let (participant, at) =
            (Some(self.participants.number(id)), self.config.clock.run_time(at));
        self.event_row(EventRow { at, participant, kind: kind.to_owned(), count: 1, detail });
    }

    /// How a session ended, without the secrets that its server has repeated.
    pub(super) fn told(&self, outcome: &Outcome) -> Outcome {
        match outcome {
            Outcome::Completed => Outcome::Completed,
            Outcome::Failed(Failure { reason, detail }) => Outcome::Failed(Failure {
                reason: reason.clone(),
                detail: self.without_secrets(detail.clone()),
            }),
        }
    }

    /// What may be a server's words, without the secrets in them that it was told.
    fn without_secrets(&self, said: Detail) -> Detail {
        if self.config.secrets.is_empty() {
            return said;
        }
        self.config.without_secrets(&said).into()
    }

    /// Whether there are enough rows of a kind: a server that says very much costs no words.
    fn is_counted_only(&mut self, kind: &str) -> bool {
        let count = self.events.get_mut(kind).filter(|count| **count >= EVENTS_OF_A_KIND_MAX);
        count.is_some_and(|count| {
            *count = count.saturating_add(1);
            true
        })
    }

    pub(super) fn event_row(&mut self, event: EventRow) {
        let count = self.events.entry(event.kind.clone()).or_default();
        *count = count.saturating_add(1);
        if *count > EVENTS_OF_A_KIND_MAX {
            return; // counted in one row at the end
        }
        snapshot::remember(&mut self.snapshot, &event);
        self.write(Row::Event(event));
    }

    /// Writes one row for each kind of event that was too frequent, with the number of unwritten
    /// events.
    pub(super) fn write_unwritten_events(&mut self, at: RunTime) {
        for (kind, count) in std::mem::take(&mut self.events) {
            let count = count.saturating_sub(EVENTS_OF_A_KIND_MAX);
            if count > 0 {
                let detail =
                    format!("{count} more events of this kind were not written individually")
                        .into();
                self.write(Row::Event(EventRow { at, participant: None, kind, count, detail }));
            }
        }
    }

    /// Writes one row for each media path, with the number of participants.
    pub(super) fn write_media_paths(&mut self, at: RunTime) {
        for (path, count) in std::mem::take(&mut self.paths) {
            let kind = format!("{}{}", MediaPath::EVENT, path.key());
            let detail = format!("media of {count} participants took this path").into();
            self.write(Row::Event(EventRow { at, participant: None, kind, count, detail }));
        }
    }

    /// Writes one row for each address of a name with several, with the number of participants.
    pub(super) fn write_addresses(&mut self, at: RunTime) {
        for (address, count) in self.config.addresses.take() {
            let kind = format!("{ADDRESS_EVENT}{address}");
            let detail =
                format!("{count} participants used this address of a name with several").into();
            self.write(Row::Event(EventRow { at, participant: None, kind, count, detail }));
        }
    }
}
