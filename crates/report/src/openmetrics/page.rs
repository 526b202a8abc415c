//! The tables of `docs/metrics.md`: every family that can be exposed.

use throng_observation::host::catalogue;
use throng_observation::{
    ChatCounters, Counter, Counters as _, HttpRequestCounters, PlaybackCounters, SentCounters,
    TrackCounters,
};
use throng_scenario::objective::{CATALOGUE, Unit};

use super::declared;
use super::family::{CHAT, Family, PLAYERS, REQUESTS, SENT, TRACKS};

/// Families that have the same labels.
pub(super) struct Section {
    about: String,
    pub(super) families: Vec<Family>,
}

/// The families of counters: how their names begin, what is counted, by which labels.
const SUMS: [(&str, &str, &[Counter]); 5] = [
    (TRACKS, "Received tracks: labels `cohort`, `kind`", TrackCounters::COUNTERS),
    (SENT, "Sent tracks: labels `cohort`, `kind`", SentCounters::COUNTERS),
    (PLAYERS, "Players: label `cohort`", PlaybackCounters::COUNTERS),
    (CHAT, "Participants of a chat: label `cohort`", ChatCounters::COUNTERS),
    (
        REQUESTS,
        "HTTP requests of players: label `outcome`, a status or why there was none",
        HttpRequestCounters::COUNTERS,
    ),
];

/// All families but those that are declared, by what they are of.
pub(super) fn sections() -> Vec<Section> {
    let sums = SUMS.into_iter().map(|(prefix, about, counters)| Section {
        about: about.to_owned(),
        families: counters.iter().map(|counter| Family::of_sum(prefix, counter).0).collect(),
    });
    let objectives = CATALOGUE.iter().flat_map(|entry| {
        let has_source = entry.unit == Unit::FramesPerSecond;
        let of_source = has_source.then(|| Family::of_objective(entry, true).0);
        std::iter::once(Family::of_objective(entry, false).0).chain(of_source)
    });
    let objectives = Section {
        about: "What objectives of the scenario measured over the last 10 s: label `objective`"
            .to_owned(),
        families: objectives.collect(),
    };
    let hosts = catalogue::GROUPS.iter().map(|group| Section {
        about: format!("Hosts, with the label `host`. {}", group.about.trim_end_matches('.')),
        families: group.metrics.iter().map(|metric| Family::of_host(metric).0).collect(),
    });
    sums.chain([objectives]).chain(hosts).collect()
}

/// The tables.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from("\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n");
    for declared in declared::all() {
        let (family, labels) = (Family::of(declared), declared.labels);
        page += &format!("| {} | {labels} | {} |\n", called(&family), family.help);
    }
    for Section { about, families } in sections() {
        page += &format!("\n{about}:\n\n| Metric | Type | Meaning |\n|---|---|---|\n");
        for family in families {
            page += &format!("| {} | {} |\n", called(&family), family.help);
        }
    }
    page
}

/// The name by which a family is asked for, and its type.
fn called(family: &Family) -> String {
    format!("`{}` | {}", family.called(), family.kind.key())
}
