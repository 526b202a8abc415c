//! The names of a scenario, each resolved once.

use std::net::{IpAddr, ToSocketAddrs};

use crate::console::CliError;

/// Hosts that the scenario names, each resolved once: the run connects to the addresses that were
/// judged, and to no later answer of DNS.
#[derive(Default)]
pub(super) struct JudgedNames(pub(super) Vec<(String, Vec<IpAddr>)>);

impl JudgedNames {
    pub(super) fn resolve(&mut self, host: &str, port: u16) -> Result<Vec<IpAddr>, CliError> {
        if let Some(addresses) = self.get(host) {
            return Ok(addresses.to_vec());
        }
        let addresses = resolve(host, port)?;
        self.0.push((host.to_owned(), addresses.clone()));
        Ok(addresses)
    }

    pub(super) fn get(&self, host: &str) -> Option<&[IpAddr]> {
        let (_, addresses) = self.0.iter().find(|(name, _)| name == host)?;
        Some(addresses)
    }
}

pub(super) fn resolve(host: &str, port: u16) -> Result<Vec<IpAddr>, CliError> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = (bare, port)
        .to_socket_addrs()
        .map_err(|error| CliError::target(format!("cannot resolve {host}: {error}")))?;
    let mut addresses = Vec::new();
    for address in found.map(|address| address.ip().to_canonical()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}
