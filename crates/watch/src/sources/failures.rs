//! Reports the sources of a host that cannot be read.

use std::collections::BTreeMap;
use std::fmt::Display;

use throng_observation::host::{HostEventKind, HostId};

use crate::reading::{Clock, Reading};
use crate::{ReadingWriter, RowSender};

/// Where readings go: the host they are of, the run's queue of rows, and the run's clock.
#[derive(Clone)]
pub(super) struct RowSink {
    pub(super) host: HostId,
    pub(super) rows: RowSender,
    pub(super) clock: Clock,
}

impl RowSink {
    pub(super) fn writer(&self) -> ReadingWriter {
        ReadingWriter::new(self.host, self.rows.clone())
    }
}

/// Sources that cannot be read. Each reason is reported once.
pub(super) struct ReadFailures {
    sink: RowSink,
    pub(super) reasons: BTreeMap<String, String>,
}

impl std::fmt::Debug for ReadFailures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.reasons.fmt(f)
    }
}

impl ReadFailures {
    pub(super) fn new(sink: RowSink) -> Self {
        Self { sink, reasons: BTreeMap::new() }
    }

    /// Reports that the source `what` cannot be read, or that it can be read again.
    pub(super) fn report<T, E: Display>(&mut self, what: &str, result: Result<T, E>) -> Option<T> {
        let (kind, detail) = match &result {
            Ok(_) if self.reasons.remove(what).is_none() => return result.ok(),
            Ok(_) => (HostEventKind::Watcher, format!("{what} can be read now")),
            Err(error) => {
                let why = error.to_string();
                if self.reasons.get(what) == Some(&why) {
                    return None;
                }
                self.reasons.insert(what.to_owned(), why.clone());
                (HostEventKind::Unreadable, format!("{what} is not read: {why}"))
            }
        };
        self.sink.writer().write((self.sink.clock)(), [Reading::Event(kind, detail)]);
        result.ok()
    }
}
