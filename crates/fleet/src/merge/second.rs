//! A second that is not sealed: the sums of the workers that have closed it.

use std::collections::{BTreeMap, BTreeSet};

use throng_observation::run::{CohortId, CrowdRow, GeneratorRow, Row, SentRow, SeriesRow};
use throng_observation::{ChatRow, ExperienceRow, PlaybackRow, SecondClosed};

use super::experience::End;
use super::family::Family;
use super::http_requests::Requests;

/// The sums so far.
#[derive(Debug, Default)]
pub(super) struct OpenSecond {
    /// By worker, because the crowd of one that does not close a later second is taken from here.
    crowd: BTreeMap<u16, BTreeMap<CohortId, CrowdRow>>,
    series: Family<SeriesRow>,
    sent: Family<SentRow>,
    playback: Family<PlaybackRow>,
    chat: Family<ChatRow>,
    generator: Vec<GeneratorRow>,
    end: End,
    /// The workers that closed it.
    closed_by: BTreeSet<u16>,
}

impl OpenSecond {
    /// Adds a worker's row. Only rows that belong to a second come here.
    pub(super) fn add(&mut self, worker: u16, row: Row) {
        match row {
            Row::Crowd(row) => drop(self.crowd.entry(worker).or_default().insert(row.cohort, row)),
            Row::Series(row) => self.series.add(*row),
            Row::Sent(row) => self.sent.add(row),
            Row::Playback(row) => self.playback.add(*row),
            Row::Chat(row) => self.chat.add(*row),
            Row::Generator(row) => self.generator.push(GeneratorRow { worker, ..row }),
            // Told once, or closed with the second.
            Row::SecondClosed(_)
            | Row::Participant(_)
            | Row::Track(_)
            | Row::Player(_)
            | Row::HttpRequests(_)
            | Row::LayerSwitch(_)
            | Row::Event(_)
            | Row::Hold(_)
            | Row::Canary(_)
            | Row::Host(_) => {}
        }
    }

    /// A worker closes it.
    pub(super) fn close(&mut self, worker: u16, closed: SecondClosed) {
        self.end.add(closed);
        self.closed_by.insert(worker);
    }

    pub(super) fn is_closed_by(&self, worker: u16) -> bool {
        self.closed_by.contains(&worker)
    }

    /// Failed participants of a worker that has finished.
    pub(super) fn unserved(&mut self, rows: impl Iterator<Item = ExperienceRow>) {
        self.end.unserved(rows);
    }

    /// A worker that should have closed it did not.
    pub(super) fn miss(&mut self) {
        self.end.miss();
    }

    /// The crowd of a worker.
    pub(super) fn crowd_of(&self, worker: u16) -> BTreeMap<CohortId, CrowdRow> {
        self.crowd.get(&worker).cloned().unwrap_or_default()
    }

    /// Writes the rows of the second, in the order in which one machine writes them.
    pub(super) fn seal(self, second: i64, requests: &mut Requests, out: &mut Vec<Row>) {
        let mut crowd = Family::<CrowdRow>::default();
        self.crowd.into_values().flat_map(BTreeMap::into_values).for_each(|row| crowd.add(row));
        out.extend(crowd.into_rows().map(Row::Crowd));
        out.extend(self.series.into_rows().map(|row| Row::Series(Box::new(row))));
        out.extend(self.sent.into_rows().map(Row::Sent));
        out.extend(self.playback.into_rows().map(|row| Row::Playback(Box::new(row))));
        out.extend(self.chat.into_rows().map(|row| Row::Chat(Box::new(row))));
        let mut generator = self.generator;
        generator.sort_by_key(|row| (row.worker, row.second, row.thread));
        out.extend(generator.into_iter().map(Row::Generator));
        requests.take_changed(out);
        out.push(Row::SecondClosed(self.end.closed(second)));
    }
}
