//! One crowd from many machines, from the coordinator's side: what `--fleet` adds to other
//! commands, and `throng fleet`. A worker uses what both sides have to agree on.

pub(crate) mod build;
pub(crate) mod clock_source;
mod coordinate;
mod decisions;
pub(crate) mod feed;
mod gathered;
mod manifest;
mod merging;
mod record;
mod resume;
mod ssh;
mod workers;

pub(crate) use gathered::{Gathered, check_crowd};
pub(crate) use resume::resume;
pub(crate) use workers::{FleetWorkers, workers_asked};

use std::net::IpAddr;
use std::time::{Duration, Instant};

use throng_fleet::{BusConfig, FleetError};
use throng_scenario::{AddressPolicy, Network};

use crate::args::{Bus, FleetCommand, FleetCommands, duration};
use crate::console::{CliError, Exit, Interrupt, say};
use crate::secrets;

/// Between two attempts to reach the bus.
const BUS_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// `throng fleet`.
pub(crate) fn fleet(command: &FleetCommands) -> Result<Exit, CliError> {
    match &command.command {
        FleetCommand::Manifest(flags) => manifest::manifest(flags),
    }
}

/// The bus that the flags name; `None` without `--fleet`.
pub(crate) fn bus(flags: &Bus) -> Result<Option<BusConfig>, CliError> {
    let Some(url) = &flags.fleet else { return Ok(None) };
    // A password in an argument is one that everybody on the host can read.
    let address = secrets::secret(url)?;
    Ok(Some(BusConfig {
        credentials: flags.fleet_creds.clone(),
        nkey: flags.fleet_nkey.clone(),
        tls_ca: flags.fleet_ca.clone(),
        ..BusConfig::at(address.expose()).map_err(error)?
    }))
}

/// How long the bus is waited for; not at all unless the user says so.
pub(crate) fn bus_wait(flag: Option<&str>) -> Result<Duration, CliError> {
    flag.map_or(Ok(Duration::ZERO), |text| duration("--fleet-wait", text))
}

/// Connects to the bus; one that cannot be used is tried again until `wait` is over, such as one
/// that is started with its workers.
pub(crate) fn reached<T>(
    wait: Duration,
    interrupt: &Interrupt,
    connect: impl Fn() -> Result<T, FleetError>,
) -> Result<T, CliError> {
    let (since, mut said) = (Instant::now(), String::new());
    loop {
        match connect() {
            Err(why @ FleetError::BusUnreachable { .. }) if since.elapsed() < wait => {
                if interrupt.is_set() {
                    return Err(error(FleetError::Interrupted));
                }
                let why = why.to_string();
                if why != said {
                    say(&format!("{why}; it is tried again"));
                    said = why;
                }
                std::thread::sleep(BUS_AGAIN_AFTER);
            }
            done => return done.map_err(error),
        }
    }
}

/// Which addresses of a bus need no encryption: those of this host, and of the networks that were
/// allowed.
pub(crate) fn may_be_plain(allowed: &[Network]) -> impl Fn(IpAddr) -> bool {
    let own = throng_engine::preflight::own_addresses();
    let policy = AddressPolicy::new(own, allowed.iter().copied()).with_this_host();
    move |address| policy.permits_address(address).is_ok()
}

/// An error of the fleet, with the exit code of its kind.
pub(crate) fn error(error: FleetError) -> CliError {
    let exit = match error {
        FleetError::Interrupted => Exit::Interrupted,
        FleetError::BusAddress(_) | FleetError::Credentials { .. } | FleetError::IsLed { .. } => {
            Exit::Usage
        }
        _ => Exit::Invalid,
    };
    CliError::new(exit, error)
}
