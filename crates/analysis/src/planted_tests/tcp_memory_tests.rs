//! What the memory of TCP sockets explains, and what explains it.

use throng_observation::host::Unit;

use super::explained;
use super::planted_limits::{full_line, tcp_memory};
use super::simulated_run::{SimulatedRun, UserImpact};
use crate::bottleneck::BottleneckVerdict;
use crate::findings::FindingRole;

#[test]
fn memory_of_tcp_sockets_behind_a_full_line_is_its_symptom() {
    let mut sim = SimulatedRun::new();
    full_line(&mut sim);
    tcp_memory(&mut sim);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(found.finding.as_deref(), Some("line_rate"), "{found:#?}");
    let memory = found.other_findings.iter().find(|other| other.finding == "tcp_memory");
    assert_eq!(memory.map(|memory| memory.role), Some(FindingRole::Symptom), "{found:#?}");
}

#[test]
fn memory_of_tcp_sockets_holds_up_no_media_that_go_by_udp() {
    let mut sim = SimulatedRun::new();
    tcp_memory(&mut sim);
    sim.impact = UserImpact::Delay;
    sim.put("udp.out_datagrams", &[], Unit::PerSecond, None, |m| 120.0 * m.users);
    let found = explained(&mut sim).bottleneck;
    assert_eq!(
        (found.finding.as_deref(), found.verdict),
        (Some("tcp_memory"), BottleneckVerdict::Suspect),
        "{found:#?}"
    );
}

#[test]
fn memory_of_tcp_sockets_that_became_short_before_explains_nothing() {
    let mut sim = SimulatedRun::new();
    tcp_memory(&mut sim);
    sim.put("tcp.memory_pressures", &[], Unit::PerSecond, None, |_| 0.5);
    let found = explained(&mut sim).bottleneck;
    let others = found.other_findings.iter().map(|other| &other.finding);
    let mut said = found.finding.iter().chain(others);
    assert!(said.all(|key| key != "tcp_memory"), "{found:#?}");
}
