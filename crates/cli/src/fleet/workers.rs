//! The workers of a matrix or a proof, which play its runs one after the other. Each run is a
//! `throng run` or `throng find` of its own; this says with which flags, and keeps the workers of
//! `--on` from the first run to the last.

use std::path::PathBuf;

use clap::ValueEnum as _;
use throng_fleet::BusConfig;
use throng_scenario::{Secret, TokenSource};

use super::ssh::Remote;
use crate::args::Fleet;
use crate::console::CliError;

/// Where a run finds the address of the bus: arguments would show its password.
const BUS_VARIABLE: &str = "THRONG_FLEET_BUS";

/// How many workers the flags ask for; `None` without `--fleet` and `--on`.
pub(crate) fn workers_asked(flags: &Fleet) -> Result<Option<usize>, CliError> {
    match (&flags.bus.fleet, flags.on.len(), flags.workers) {
        (None, 0, _) => Ok(None),
        (Some(_), _, None) => Err(CliError::usage("--fleet needs --workers N")),
        (Some(_), _, asked) => Ok(asked),
        (None, hosts, _) => Ok(Some(hosts)),
    }
}

/// Workers that stay from run to run.
pub(crate) struct FleetWorkers {
    flags: Vec<String>,
    by_hand: Vec<String>,
    /// The address of the bus of `--fleet`, if it was given itself.
    bus: Option<Secret>,
    /// Those of `--on`, which end with this value.
    remote: Option<Remote>,
}

impl FleetWorkers {
    /// Starts the workers of `--on`, which may load `allow_target`; those of `--fleet` are there,
    /// or come.
    pub(crate) fn start(
        flags: &Fleet,
        workers: usize,
        allow_target: &[String],
    ) -> Result<Self, CliError> {
        let (run_flags, by_hand) = words(flags, workers);
        let bus = flags.bus.fleet.as_deref().and_then(|url| match TokenSource::parse(url) {
            TokenSource::Inline(url) => Some(url),
            TokenSource::Environment(_) | TokenSource::File(_) => None,
        });
        let remote = Remote::start_to_stay(flags, allow_target)?;
        Ok(Self { flags: run_flags, by_hand, bus, remote })
    }

    /// The flags by which a run has these workers.
    pub(crate) fn flags(&self) -> &[String] {
        &self.flags
    }

    /// The flags for a person, without what is secret.
    pub(crate) fn by_hand(&self) -> &[String] {
        &self.by_hand
    }

    /// What a run needs in its environment.
    pub(crate) fn variable(&self) -> Option<(&'static str, String)> {
        let of_remote = self.remote.as_ref().map(Remote::bus_address);
        let url = self.bus.as_ref().map(|url| url.expose().to_owned()).or(of_remote)?;
        Some((BUS_VARIABLE, url))
    }

    /// Which workers of `--on` have ended, and what they said: without them no run can begin.
    pub(crate) fn gone(&mut self) -> Option<String> {
        let said = self.remote.as_mut().map(Remote::problems)?;
        (!said.is_empty()).then(|| format!("workers have ended{said}"))
    }
}

/// The flags of a run, and those for a person.
fn words(flags: &Fleet, workers: usize) -> (Vec<String>, Vec<String>) {
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let on_loss =
        flags.on_loss.and_then(|what| Some(what.to_possible_value()?.get_name().to_owned()));
    let common = [
        ("--fleet-wait", flags.fleet_wait.clone()),
        ("--on-loss", on_loss),
        ("--clock-error", flags.clock_error.clone()),
    ];
    let by_bus = |url: String| {
        let bus = [
            ("--fleet", Some(url)),
            ("--workers", Some(workers.to_string())),
            ("--fleet-creds", path(&flags.bus.fleet_creds)),
            ("--fleet-nkey", path(&flags.bus.fleet_nkey)),
            ("--fleet-ca", path(&flags.bus.fleet_ca)),
        ];
        given(bus.into_iter().chain(common.clone()))
    };
    let by_variable = || by_bus(format!("env:{BUS_VARIABLE}"));
    match &flags.bus.fleet {
        Some(url) => match TokenSource::parse(url) {
            TokenSource::Inline(_) => (by_variable(), by_bus(shown(url))),
            TokenSource::Environment(_) | TokenSource::File(_) => {
                (by_bus(url.clone()), by_bus(url.clone()))
            }
        },
        None => {
            let on = [
                ("--on", Some(flags.on.join(","))),
                ("--ssh", flags.ssh.clone()),
                ("--remote-throng", flags.remote_throng.clone()),
            ];
            (by_variable(), given(on.into_iter().chain(common.clone())))
        }
    }
}

/// The flags that have a value.
fn given(flags: impl Iterator<Item = (&'static str, Option<String>)>) -> Vec<String> {
    flags.filter_map(|(flag, value)| Some([flag.to_owned(), value?])).flatten().collect()
}

/// The address of a bus without its password.
fn shown(url: &str) -> String {
    BusConfig::at(url).map_or_else(|_| "the bus".to_owned(), |bus| bus.shown())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Bus, OnLoss};

    fn said(flags: &Fleet) -> (String, String) {
        let (run, by_hand) = words(flags, 2);
        (run.join(" "), by_hand.join(" "))
    }

    #[test]
    fn a_run_has_the_flags_of_its_matrix_and_a_person_sees_no_password() {
        let bus = Bus {
            fleet: Some("nats://ada:secret@10.0.0.5".into()),
            fleet_ca: Some("ca.pem".into()),
            ..Bus::default()
        };
        let fleet = Fleet {
            bus,
            workers: Some(2),
            on_loss: Some(OnLoss::GoOn),
            clock_error: Some("50us".into()),
            ..Fleet::default()
        };
        let (run, by_hand) = said(&fleet);
        let more = "--workers 2 --fleet-ca ca.pem --on-loss go-on --clock-error 50us";
        assert_eq!(run, format!("--fleet env:THRONG_FLEET_BUS {more}"));
        assert_eq!(by_hand, format!("--fleet nats://10.0.0.5:4222 {more}"));
        let bus = Bus { fleet: Some("env:BUS".into()), ..Bus::default() };
        let (run, by_hand) = said(&Fleet { bus, ..Fleet::default() });
        assert_eq!((run.as_str(), by_hand.as_str()), ("--fleet env:BUS --workers 2", run.as_str()));
    }

    #[test]
    fn runs_reach_the_workers_of_ssh_by_the_bus_that_was_started_for_them() {
        let fleet = Fleet {
            on: vec!["box1".into(), "box2".into()],
            ssh: Some("ssh -p 2222".into()),
            fleet_wait: Some("1m".into()),
            ..Fleet::default()
        };
        let (run, by_hand) = said(&fleet);
        assert_eq!(run, "--fleet env:THRONG_FLEET_BUS --workers 2 --fleet-wait 1m");
        assert_eq!(by_hand, "--on box1,box2 --ssh ssh -p 2222 --fleet-wait 1m");
        assert_eq!(workers_asked(&fleet).ok(), Some(Some(2)));
    }

    #[test]
    fn a_bus_needs_the_number_of_workers() {
        let of = |fleet: Option<&str>, workers| {
            let bus = Bus { fleet: fleet.map(str::to_owned), ..Bus::default() };
            workers_asked(&Fleet { bus, workers, ..Fleet::default() }).ok()
        };
        assert_eq!(of(None, None), Some(None));
        assert_eq!(of(Some("nats://a"), Some(3)), Some(Some(3)));
        assert_eq!(of(Some("nats://a"), None), None);
    }
}
