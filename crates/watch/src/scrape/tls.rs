//! TLS to endpoints: certificates of a known authority, or one that is pinned by its fingerprint.

use std::sync::Arc;

use rustls::{ClientConfig, DEFAULT_VERSIONS};
use throng_net::tls::{Trust, client_config, system_roots};

/// A client's configuration; `pin` is the SHA-256 of the only certificate that is trusted.
pub(super) fn client(pin: Option<[u8; 32]>) -> Result<Arc<ClientConfig>, String> {
    let trust = pin.map_or_else(|| Trust::Authorities(system_roots()), Trust::Fingerprint);
    client_config(trust, DEFAULT_VERSIONS).map(Arc::new).map_err(|error| format!("TLS: {error}"))
}
