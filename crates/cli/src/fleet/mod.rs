//! One crowd from many machines: `throng worker`, and what `--fleet` adds to other commands.

mod build;
mod coordinate;
mod gathered;
mod ssh;
mod worker;

pub(crate) use gathered::Gathered;
pub(crate) use worker::worker;

use std::net::IpAddr;

use throng_fleet::{BusConfig, FleetError};
use throng_scenario::{AddressPolicy, Network};

use crate::CliError;
use crate::args::Bus;
use crate::exit::Exit;

/// The bus that the flags name; `None` without `--fleet`.
fn bus(flags: &Bus) -> Option<BusConfig> {
    Some(BusConfig {
        url: flags.fleet.clone()?,
        credentials: flags.fleet_creds.clone(),
        nkey: flags.fleet_nkey.clone(),
        tls_ca: flags.fleet_ca.clone(),
    })
}

/// Which addresses of a bus need no encryption: those of this host, and of the networks that were allowed.
fn may_be_plain(allowed: &[Network]) -> impl Fn(IpAddr) -> bool {
    let own = throng_engine::preflight::own_addresses();
    let policy = AddressPolicy::new(own, allowed.iter().copied());
    move |address| policy.permits(address).is_ok()
}

/// An error of the fleet, with the exit code of its kind.
fn error(error: FleetError) -> CliError {
    let exit = match error {
        FleetError::Interrupted => Exit::Interrupted,
        FleetError::BusAddress(_) | FleetError::Credentials { .. } => Exit::Usage,
        _ => Exit::Invalid,
    };
    CliError::new(exit, error)
}
