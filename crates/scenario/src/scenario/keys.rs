//! The keys of `[crowd]`; those that say what its participants do are in `role/keys.rs`.

use std::time::Duration;

use schemars::SchemaGenerator;
use serde_json::Value as Json;

use super::{Cohort, SIZE_MAX};
use crate::arrival::{ARRIVAL, ArrivalKind};
use crate::churn::STAY;
use crate::keys::Usual::{LeftOut, Required, Said, StoredSaid};
use crate::keys::{By, Inner, Key, Keyed, Maybe, Several, Whole, keys, networks, time};
use crate::network::AddressRange;
use crate::role::Role;
use crate::streams::STREAMS;
use crate::target::TARGET_URL;

const RECONNECT: Inner = Inner("a table such as { at = \"60s\", within = \"2s\" }");

impl Keyed for Cohort {
    const NAME: &'static str = "CohortFile";
    const MEANING: &'static str =
        "Participants with the same configuration, which arrive together.";

    keys! {
        /// participants per room, 1 to 1 000 000; with `rejoin`, how many are present at a time
        "size": size = Whole(1, SIZE_MAX), Required("write for example size = 100");
        /// its name in reports, 1 to 64 characters
        "name": name = NAME,
            StoredSaid(
                "`viewers`, by WHIP, `publish+rtsp`, RTMP and SRT `publishers`; with several, \
                 `crowd 1`, `crowd 2` …"
            );
        /// the cohort's own URL on the same host and port, with the same token; publishers by RTMP
        /// or SRT may have another port than `target.url`. Not in a conference
        "url": target = Maybe(TARGET_URL), Said("`target.url`");
        /// number of streams for `{stream}` in the URL: `10` distributes participants round robin;
        /// `{ count = 10, zipf = 1.0, seed = 1 }` by Zipf's law, the second stream with half of the
        /// first one's viewers. `--streams 10` is the short form
        "streams": streams = Maybe(STREAMS), Said("none");
        /// when they join
        "arrival": arrival = ARRIVAL, StoredSaid("`{ every = \"100ms\" }`");
        /// when the arrivals begin, since the start of the run: `"10m"` for a cohort that comes
        /// later. A search waits for that of the cohort that it varies, up to 30 s: the stream of a
        /// publisher begins meanwhile
        "starts_at": starts_at = time("10m"), LeftOut;
        /// how long each stays
        "stay": stay = Maybe(STAY), Said("until the end of the run");
        /// the whole cohort leaves and joins again, evenly spaced with the jitter of `arrival`: `{
        /// at = "60s", within = "2s" }`
        "reconnect": reconnect = Maybe(RECONNECT), Said("never");
        /// local addresses or ranges, assigned round robin, `["127.0.0.2-127.0.0.20"]`
        "source_ips": source_ips = SOURCE_IPS, Said("by the routing table");
    }

    /// Without a name, which follows from the other cohorts.
    fn usual() -> Self {
        Self {
            name: String::new(),
            size: 1,
            arrival: ArrivalKind::default(),
            starts_at: Duration::ZERO,
            stay: None,
            source_ips: Vec::new(),
            streams: None,
            target: None,
            role: None,
            reconnect: None,
        }
    }

    fn beside(generator: &mut SchemaGenerator) -> Vec<Key> {
        Role::keys(generator)
    }

    fn write_beside(&self) -> Vec<(&'static str, Json)> {
        self.role.as_ref().map(Role::written).unwrap_or_default()
    }
}

/// It is read before the other keys, and must differ from those of other cohorts.
const NAME: By<String> = By { read: |_, _, _| None, ..crate::keys::NAME };

const SOURCE_IPS: Several<AddressRange> = networks("addresses", "127.0.0.2-127.0.0.20");
