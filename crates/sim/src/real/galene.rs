//! Galène (Go): rooms, which publishers enter by WHIP, with a chat over WebSocket.

use std::net::Ipv4Addr;

use super::{Launch, RealServer, write};
use crate::namespace::Namespace;
use crate::support::SimError;

/// The program.
pub const PROGRAM: &str = "galene";
/// WHIP (`/group/room/.whip`) and the WebSocket of rooms (`/ws`).
pub const PORT: u16 = 8443;

/// A room that everybody may enter and speak in.
const ROOM: &str = r#""public": true, "allow-anonymous": true,
 "wildcard-user": {"password": {"type": "wildcard"}, "permissions": "present"}"#;

/// Starts it with the room `room`, without TLS and without a relay.
///
/// # Errors
/// When it is not installed or does not come up.
pub fn start(namespace: &Namespace, address: Ipv4Addr) -> Result<RealServer<'_>, SimError> {
    start_with(namespace, address, 1000)
}

/// Starts it with a room of so many clients at most (`max-clients`).
///
/// # Errors
/// As [`start`].
pub fn start_with(
    namespace: &Namespace,
    address: Ipv4Addr,
    clients_max: u32,
) -> Result<RealServer<'_>, SimError> {
    let folder = tempfile::tempdir()?;
    let room = format!("{{\"max-clients\": {clients_max}, {ROOM}}}");
    write(folder.path(), "groups/room.json", &room)?;
    // It wants its pages to be there, and serves none here.
    for name in ["data", "static"] {
        std::fs::create_dir(folder.path().join(name))?;
    }
    let listen = format!("{address}:{PORT}");
    let launch = Launch {
        program: PROGRAM,
        arguments: &["-http", &listen, "-insecure", "-turn", ""],
        ports: &[PORT],
    };
    RealServer::start(namespace, address, folder, &launch)
}
