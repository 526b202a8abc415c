//! The downloads of one participant: a task for each, and the demand that the task meets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use throng_protocol::participant::{ChannelError, Demand, FetchId};
use tokio::task::AbortHandle;

use super::{EventSender, SignallingEvent};
use crate::requests::{OpenRequest, RequestEnd, RequestTable};
use crate::sockets::http::{Demands, DownloadPart, Receiver};

/// Distinguishes a download from a former one with the same number, whose events may still be in
/// the inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serial(u64);

/// The downloads in progress. Those that are removed, or dropped with this, end at once.
#[derive(Default)]
pub(super) struct Downloads {
    running: Vec<Running>,
    begun: u64,
}

struct Running {
    fetch: FetchId,
    serial: Serial,
    demands: Arc<Demands>,
    request: OpenRequest,
    task: AbortHandle,
}

impl Downloads {
    /// Begins a download with the task that `begin` spawns. It replaces one with the same number.
    pub(super) fn begin(
        &mut self,
        fetch: FetchId,
        request: OpenRequest,
        requests: &mut RequestTable,
        begin: impl FnOnce(Serial, Arc<Demands>) -> AbortHandle,
    ) {
        self.cancel(fetch, requests);
        self.begun += 1;
        let (serial, demands) = (Serial(self.begun), Arc::new(Demands::default()));
        let task = begin(serial, Arc::clone(&demands));
        self.running.push(Running { fetch, serial, demands, request, task });
    }

    /// Adds to the demand of a download; of one that has ended, nothing is left to demand.
    pub(super) fn demand(&self, fetch: FetchId, demand: Demand) {
        if let Some(running) = self.running.iter().find(|running| running.fetch == fetch) {
            running.demands.push(demand);
        }
    }

    pub(super) fn cancel(&mut self, fetch: FetchId, requests: &mut RequestTable) {
        if let Some(at) = self.running.iter().position(|running| running.fetch == fetch) {
            self.running.swap_remove(at).end(RequestEnd::Cancelled, requests);
        }
    }

    /// Ends all of them.
    pub(super) fn cancel_all(&mut self, requests: &mut RequestTable) {
        self.running.drain(..).for_each(|running| running.end(RequestEnd::Cancelled, requests));
    }

    /// Whether an event is of a download that was not cancelled; the last one removes the download.
    pub(super) fn accepts(
        &mut self,
        fetch: FetchId,
        serial: Serial,
        part: &DownloadPart,
        requests: &mut RequestTable,
    ) -> bool {
        let is_it = |running: &Running| (running.fetch, running.serial) == (fetch, serial);
        let Some(at) = self.running.iter().position(is_it) else { return false };
        let Some(running) = self.running.get_mut(at) else { return false };
        match part {
            DownloadPart::Head(head, _) => running.request.answered(head),
            DownloadPart::Body(bytes) => running.request.received(bytes.len() as u64),
            DownloadPart::Ignored(bytes) => running.request.received(*bytes),
            DownloadPart::Transport(_) => {}
            DownloadPart::Finished(result) => {
                self.running.swap_remove(at).end(RequestEnd::Finished(result), requests);
            }
        }
        true
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        self.running.iter().for_each(|running| running.task.abort());
    }
}

impl Running {
    /// Ends its task, and counts its request.
    fn end(self, end: RequestEnd<'_>, requests: &mut RequestTable) {
        self.task.abort();
        self.request.end(Instant::now(), end, requests);
    }
}

/// Sends the parts of one download to its slot.
pub(super) struct PartSender {
    events: EventSender,
    fetch: FetchId,
    serial: Serial,
    is_finished: AtomicBool,
}

impl PartSender {
    pub(super) fn new(events: EventSender, fetch: FetchId, serial: Serial) -> Self {
        Self { events, fetch, serial, is_finished: AtomicBool::new(false) }
    }
}

impl Receiver for PartSender {
    async fn receive(&self, part: DownloadPart) {
        if matches!(part, DownloadPart::Finished(_)) {
            self.is_finished.store(true, Ordering::Relaxed);
        }
        self.events.send(SignallingEvent::Download(self.fetch, self.serial, part)).await;
    }
}

impl Drop for PartSender {
    /// A task that is dropped unfinished was cancelled, and then nothing accepts this event; or a
    /// library panicked on what a server sent, and the participant must not wait for the end.
    fn drop(&mut self) {
        if !*self.is_finished.get_mut() {
            let defect = ChannelError::Generator(
                "a defect in throng or a library ended the download".into(),
            );
            let part = DownloadPart::Finished(Box::new(Err(defect)));
            self.events.try_send(SignallingEvent::Download(self.fetch, self.serial, part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn events_of_a_cancelled_download_are_not_those_of_the_next_with_its_number() {
        let (mut downloads, mut requests) = (Downloads::default(), RequestTable::default());
        let begin = |downloads: &mut Downloads, requests: &mut RequestTable| {
            let mut begun = None;
            let head = http::Request::get("http://a.example/x").body(()).unwrap().into_parts().0;
            let request = OpenRequest::new(&head, Instant::now());
            downloads.begin(FetchId(7), request, requests, |serial, _| {
                begun = Some(serial);
                tokio::spawn(std::future::pending::<()>()).abort_handle()
            });
            begun.unwrap()
        };
        let (some, last) = (DownloadPart::Ignored(1), DownloadPart::Finished(Box::new(Ok(()))));
        let first = begin(&mut downloads, &mut requests);
        assert!(
            downloads.accepts(FetchId(7), first, &some, &mut requests)
                && !downloads.accepts(FetchId(8), first, &some, &mut requests)
        );
        let second = begin(&mut downloads, &mut requests);
        assert!(!downloads.accepts(FetchId(7), first, &last, &mut requests));
        assert!(downloads.accepts(FetchId(7), second, &last, &mut requests));
        assert!(!downloads.accepts(FetchId(7), second, &some, &mut requests));
        let third = begin(&mut downloads, &mut requests);
        let task = downloads.running[0].task.clone();
        downloads.cancel(FetchId(7), &mut requests);
        assert!(!downloads.accepts(FetchId(7), third, &some, &mut requests));
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }
}
