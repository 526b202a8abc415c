//! What the cells of an experiment shrink of this machine itself: taken before anything is made,
//! looked at before and after each crowd. Figures of a resource that somebody else changed are
//! none.

use std::path::Path;

use throng_rig::{MachineLock, MachineResource, Undo};
use throng_scenario::matrix::{Shrink, ShrunkResource};

use super::plan::MatrixPlan;
use crate::console::CliError;

/// The resources of this machine that the experiment shrinks.
pub(super) struct Machine {
    held: Vec<Held>,
}

/// That what the experiment shrinks was looked at, and is as before its first run. Who makes a run
/// without it would measure what somebody else has shrunk.
#[derive(Debug)]
pub(super) struct AsBefore(());

struct Held {
    resource: MachineResource,
    /// How it is while it is not shrunk.
    before: String,
    _lock: MachineLock,
}

impl Machine {
    /// Takes what the cells of `plan` shrink.
    ///
    /// # Errors
    /// If another throng has it.
    pub(super) fn taken_for(plan: &MatrixPlan) -> Result<Self, CliError> {
        let configs = plan.cells.iter().map(|cell| plan.config(cell, Path::new("/dir")));
        let shrunk = configs.flat_map(|config| config.shrink);
        Self::taken(shrunk.filter_map(|shrink| resource(&shrink.resource)))
    }

    /// Takes what `undos` put back: whoever shrinks it meanwhile would go on with what is put back.
    ///
    /// # Errors
    /// If another throng has it.
    pub(super) fn taken_to_undo(undos: &[Undo]) -> Result<Self, CliError> {
        Self::taken(undos.iter().filter_map(MachineResource::put_back_by))
    }

    fn taken(resources: impl Iterator<Item = MachineResource>) -> Result<Self, CliError> {
        let mut held: Vec<Held> = Vec::new();
        for resource in resources {
            if held.iter().any(|held| held.resource == resource) {
                continue;
            }
            let lock = resource.lock().map_err(CliError::usage)?;
            held.push(Held { resource, before: String::new(), _lock: lock });
        }
        Ok(Self { held })
    }

    /// The first of its resources that one of `undos` puts back.
    pub(super) fn put_back_by(&self, undos: &[Undo]) -> Option<&MachineResource> {
        let put_back: Vec<MachineResource> =
            undos.iter().filter_map(MachineResource::put_back_by).collect();
        self.held.iter().map(|held| &held.resource).find(|resource| put_back.contains(resource))
    }

    /// How it is now is how it is when nothing is shrunk.
    pub(super) fn look(&mut self) {
        self.held.iter_mut().for_each(|held| held.before = held.resource.state());
    }

    /// Whether it is as before the first run.
    ///
    /// # Errors
    /// In words, what changed.
    pub(super) fn check_is_as_before(&self) -> Result<AsBefore, String> {
        let looked = self.held.iter().try_for_each(|held| {
            let now = held.resource.state();
            same(&held.resource, "since this experiment began", &held.before, &now)
        });
        looked.map(|()| AsBefore(()))
    }

    /// How it is after a cell with `shrunk` was set up, before which it was as before.
    ///
    /// # Errors
    /// In words, if something of it is not smaller.
    pub(super) fn as_shrunk(
        &self,
        _unchanged: &AsBefore,
        shrunk: &[Shrink],
    ) -> Result<Vec<String>, String> {
        let state = |held: &Held| {
            let now = held.resource.state();
            let is_shrunk = shrunk
                .iter()
                .filter(|shrink| resource(&shrink.resource).as_ref() == Some(&held.resource))
                .any(changes);
            if is_shrunk && now == held.before {
                return Err(format!("{} could not be shrunk: {now}", held.resource));
            }
            Ok(now)
        };
        self.held.iter().map(state).collect()
    }

    /// Whether it is still as [`Self::as_shrunk`] found it.
    ///
    /// # Errors
    /// In words, what changed.
    pub(super) fn check_is_still(&self, as_shrunk: &[String]) -> Result<(), String> {
        self.held.iter().zip(as_shrunk).try_for_each(|(held, was)| {
            same(&held.resource, "during this run", was, &held.resource.state())
        })
    }
}

/// What of this machine a cell has less of; `None` where it is its server's own.
fn resource(shrunk: &ShrunkResource) -> Option<MachineResource> {
    match shrunk {
        ShrunkResource::Network { interface, .. } => Some(MachineResource::Line(interface.clone())),
        ShrunkResource::Rmem => Some(MachineResource::ReceiveBuffers),
        ShrunkResource::Cpu
        | ShrunkResource::Memory
        | ShrunkResource::Disk
        | ShrunkResource::Nofile => None,
    }
}

/// Whether it looks otherwise while it is shrunk: a line gets a filter at its full rate too.
fn changes(shrink: &Shrink) -> bool {
    matches!(shrink.resource, ShrunkResource::Network { .. }) || shrink.to < 1.0
}

fn same(resource: &MachineResource, when: &str, was: &str, now: &str) -> Result<(), String> {
    if was == now {
        return Ok(());
    }
    Err(format!("somebody else changed {resource} {when}: it was {was}, and is {now}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(before: &str) -> Machine {
        let resource = MachineResource::Line(format!("none-{}", std::process::id()));
        let lock = resource.lock().unwrap();
        Machine { held: vec![Held { resource, before: before.to_owned(), _lock: lock }] }
    }

    /// The line of an interface that is not there has no filter.
    #[test]
    fn a_change_by_somebody_else_is_an_error_that_says_what_changed() {
        let mut machine = held("qdisc netem 8001: root");
        let error = machine.check_is_as_before().unwrap_err();
        assert!(error.contains("somebody else changed the line of none-"), "{error}");
        assert!(error.contains("it was qdisc netem 8001: root, and is no filter"), "{error}");
        let error = machine.check_is_still(&["qdisc tbf 7468: root".to_owned()]).unwrap_err();
        assert!(error.contains("during this run: it was qdisc tbf"), "{error}");
        machine.look();
        let unchanged = machine.check_is_as_before().unwrap();
        assert_eq!(machine.as_shrunk(&unchanged, &[]), Ok(vec!["no filter".to_owned()]));
        let MachineResource::Line(interface) = machine.held[0].resource.clone() else {
            panic!("a line")
        };
        let line = ShrunkResource::Network { interface, rate_bps: 1e6 };
        let shrink = Shrink { resource: line, to: 1.0, is_placebo: false };
        let error = machine.as_shrunk(&unchanged, &[shrink]).unwrap_err();
        assert!(error.contains("could not be shrunk: no filter"), "{error}");
    }

    #[test]
    fn buffers_that_are_left_whole_look_as_before() {
        let of = |to: f64| Shrink { resource: ShrunkResource::Rmem, to, is_placebo: true };
        assert!(changes(&of(0.8)) && !changes(&of(1.0)));
        assert_eq!(resource(&ShrunkResource::Cpu), None);
    }
}
