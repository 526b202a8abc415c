//! Moments of a run that a person marked.

use std::sync::mpsc::SyncSender;

use throng_observation::RunTime;
use throng_observation::run::{EventRow, MARK_EVENT, Row};

/// Keeps marks among the events of the run, at its present time.
pub(crate) fn keep_marks(marks: Vec<String>, at: RunTime, rows: &SyncSender<Row>) {
    for text in marks {
        let (kind, detail) = (MARK_EVENT.to_owned(), text.into());
        let event = EventRow { at, participant: None, kind, count: 1, detail };
        // Without room for it the run has more urgent rows than a mark.
        let _ = rows.try_send(Row::Event(event));
    }
}
