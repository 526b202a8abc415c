//! The lives of watched processes: which were found when, and which ended.

use std::collections::HashMap;

use super::measured::Host;
use super::{HostEvent, HostEventKind, ProcessEnd, ProcessEvent};
use crate::RunTime;

/// A watched process from the moment at which it was found until its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Life {
    /// The process, with its end if it ended.
    pub process: ProcessEvent,
    /// When it was found; `None` if that was not recorded.
    pub found: Option<RunTime>,
    /// When its end was noticed.
    pub ended: Option<RunTime>,
}

impl Life {
    /// How it ended; `None` while it lives.
    #[must_use]
    pub fn end(&self) -> Option<&ProcessEnd> {
        self.process.end.as_ref()
    }

    /// Its kind: what was found by the same target under the same name.
    #[must_use]
    pub fn kind(&self) -> (u32, &str) {
        (self.process.target, &self.process.name)
    }

    /// For how long it is known to have lived, microseconds; `None` if its begin or its end is not
    /// known.
    #[must_use]
    pub fn length_us(&self) -> Option<i64> {
        Some(self.ended?.0.saturating_sub(self.found?.0))
    }
}

impl Host<'_> {
    /// The lives of its watched processes, in the order in which they were found.
    #[must_use]
    pub fn lives(&self) -> Vec<Life> {
        let mut lives: Vec<Life> = Vec::new();
        // The places of those that live, by PID; of several with one PID the last one.
        let mut living: HashMap<u32, Vec<usize>> = HashMap::new();
        for event in &self.events {
            match event.kind {
                HostEventKind::ProcessFound => {
                    let Some(process) = ProcessEvent::of(event) else { continue };
                    living.entry(process.pid).or_default().push(lives.len());
                    lives.push(Life { process, found: Some(event.at), ended: None });
                }
                HostEventKind::ProcessEnded => end(&mut lives, &mut living, event),
                HostEventKind::Unreadable
                | HostEventKind::RateLowered
                | HostEventKind::Watcher
                | HostEventKind::LogLine
                | HostEventKind::Mark => {}
            }
        }
        lives
    }
}

/// Ends the life that the event is about: of those with its PID the last one.
fn end(lives: &mut Vec<Life>, living: &mut HashMap<u32, Vec<usize>>, event: &HostEvent) {
    let Some(process) = ProcessEvent::of(event) else { return };
    let place = living.get_mut(&process.pid).and_then(Vec::pop);
    match place.and_then(|place| lives.get_mut(place)) {
        Some(life) => (life.process.end, life.ended) = (process.end, Some(event.at)),
        // It was watched before the rows begin.
        None => lives.push(Life { process, found: None, ended: Some(event.at) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::measured::hosts;
    use crate::host::{HostId, HowEnded};
    use crate::run::RunData;

    #[test]
    fn a_pid_that_is_used_again_is_another_life() {
        let (found, ended) = (HostEventKind::ProcessFound, HostEventKind::ProcessEnded);
        let mut run = RunData::default();
        for (at_s, kind, detail) in [
            (0, found, "media (PID 7): /bin/media"),
            (3, ended, "media (PID 7): it ended by signal 9"),
            (4, found, "media (PID 7)"),
            (5, ended, "old (PID 9)"),
        ] {
            run.host.events.push(HostEvent::new(
                HostId(0),
                RunTime(at_s * 1_000_000),
                kind,
                detail,
            ));
        }
        let hosts = hosts(&run);
        let lives = hosts[0].lives();
        let how = |life: &Life| (life.length_us(), life.end().map(|end| end.how));
        assert_eq!(
            lives.iter().map(how).collect::<Vec<_>>(),
            [
                (Some(3_000_000), Some(HowEnded::Signal { number: 9, core: false })),
                (None, None),
                (None, Some(HowEnded::Unknown)),
            ]
        );
        assert!(lives[0].kind() == lives[1].kind() && lives[0].kind() != lives[2].kind());
    }
}
