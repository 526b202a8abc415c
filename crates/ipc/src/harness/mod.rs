//! Measures one transport after the other, round by round; one that cannot be measured does not
//! stop the others.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::result::{Machine, Sides};
use crate::{IpcReport, Launcher, Outcome, Plan, ReadMode, Row, Transport, TransportError};

mod child;

mod pass;

mod python;

use child::WaitError;

/// Duration of the pass that counts system calls and samples stacks.
const INSPECT: Duration = Duration::from_millis(1000);

/// Measures what `plan` says. `stop` is polled; once it returns true, the report has what was
/// measured until then. `progress` is called before each measurement, with the round counted
/// from 1.
pub fn measure(
    plan: &Plan,
    launcher: &Launcher,
    stop: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Transport, u32),
) -> IpcReport {
    let mut bench = Bench { plan, launcher, stop, python: None, of: BTreeMap::new() };
    for round in 1..=plan.rounds.max(1) {
        for transport in &plan.transports {
            if stop() {
                break;
            }
            progress(*transport, round);
            bench.measure(*transport);
        }
    }
    if plan.inspect {
        for transport in &plan.transports {
            bench.inspect(*transport);
        }
    }
    let rows = plan.transports.iter().filter_map(|transport| bench.row(*transport)).collect();
    IpcReport::new(plan, Machine::read(), rows, stop())
}

/// Measurements of one transport.
#[derive(Default)]
struct Attempt {
    passes: Vec<Sides>,
    inspected: Option<Sides>,
    error: Option<TransportError>,
}

struct Bench<'a> {
    plan: &'a Plan,
    launcher: &'a Launcher,
    stop: &'a dyn Fn() -> bool,
    python: Option<python::Python>,
    of: BTreeMap<Transport, Attempt>,
}

impl Bench<'_> {
    fn measure(&mut self, transport: Transport) {
        if self.of.get(&transport).is_some_and(|tried| tried.error.is_some()) {
            return;
        }
        let passed = self.pass(transport, self.plan.duration, false);
        let tried = self.of.entry(transport).or_default();
        match passed {
            Ok(pass) => tried.passes.push(pass),
            Err(WaitError::Failed(error)) => tried.error = Some(error),
            Err(WaitError::Stopped) => {}
        }
    }

    fn inspect(&mut self, transport: Transport) {
        if (self.stop)() || self.of.get(&transport).is_none_or(|tried| tried.passes.is_empty()) {
            return;
        }
        // The row has its figures already; a failure here only omits the columns of this pass.
        let passed = self.pass(transport, self.plan.duration.min(INSPECT), true).ok();
        self.of.entry(transport).or_default().inspected = passed;
    }

    fn pass(
        &mut self,
        transport: Transport,
        measured: Duration,
        inspect: bool,
    ) -> Result<Sides, WaitError> {
        if transport.is_python() && self.python.is_none() {
            self.python = Some(python::find(self.plan.python.as_ref())?);
        }
        let python = self.python.as_ref().map(|python| &python.program);
        pass::run(self.plan, self.launcher, transport, python, measured, inspect, self.stop)
    }

    /// The row of a transport; `None` if it was not measured before the stop.
    fn row(&mut self, transport: Transport) -> Option<Row> {
        let tried = self.of.remove(&transport)?;
        let note = self.note(transport);
        let row = |outcome, reason, figures| Row {
            transport,
            name: transport.name().into(),
            outcome,
            reason,
            note: note.clone(),
            figures,
        };
        match tried.error {
            Some(TransportError::Missing(reason)) => {
                return Some(row(Outcome::Missing, Some(reason), None));
            }
            Some(error) => return Some(row(Outcome::Failed, Some(error.to_string()), None)),
            None => {}
        }
        if tried.passes.is_empty() {
            return None;
        }
        let figures = Sides::figures(&tried.passes, tried.inspected.as_ref(), self.plan);
        Some(match figures {
            Some(figures) => row(Outcome::Measured, None, Some(figures)),
            None => {
                let why = "no frame arrived in the measured time";
                row(Outcome::Failed, Some(why.into()), None)
            }
        })
    }

    /// Remark on a row.
    fn note(&self, transport: Transport) -> Option<String> {
        match transport {
            Transport::WebsocketPython => {
                let version = self.python.as_ref().map(|python| python.version.clone())?;
                Some(match self.plan.reading {
                    ReadMode::Edges => version,
                    ReadMode::All => format!("{version}; it reads by a checksum (adler32), in C"),
                })
            }
            Transport::Fill => {
                Some("no second process: the picture is written and not passed on".into())
            }
            Transport::Memcpy => {
                Some("no second process: one copy into a buffer as large as the ring".into())
            }
            _ => None,
        }
    }
}
