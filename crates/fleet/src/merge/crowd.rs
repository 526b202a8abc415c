//! The crowd of a worker in seconds that it did not close.

use throng_observation::IceState;
use throng_observation::run::CrowdRow;

/// A worker's crowd in a second that it did not close and in which its participants may go on.
pub(super) fn unchanged(last: CrowdRow, second: i64) -> CrowdRow {
    CrowdRow { second, ..last }
}

/// A worker's crowd after its end: what it counted so far remains, nobody is connected, and
/// connections are closed unless ICE had failed, as one machine counts participants that ended.
pub(super) fn ended(last: CrowdRow, second: i64) -> CrowdRow {
    let (closed, failed) =
        (CrowdRow::ice_index(IceState::Closed), CrowdRow::ice_index(IceState::Failed));
    let mut ice = [0_u32; IceState::ALL.len()];
    for (state, count) in last.ice.into_iter().enumerate() {
        let into = if state == failed { failed } else { closed };
        if let Some(sum) = ice.get_mut(into) {
            *sum = sum.saturating_add(count);
        }
    }
    CrowdRow { second, connected: 0, playing: 0, ice, ..last }
}
