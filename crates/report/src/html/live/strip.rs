//! The strip at the top of a served page: the last second of a run in progress.

use std::fmt::Write as _;

use throng_analysis::search::{Progress, SearchPhase};
use throng_observation::units::{bit_rate, percent};

use crate::html::markup::escape;
use crate::openmetrics::Glance;

/// The strip, before the first whole second too; of a search, how far it has come, and whether it
/// is over.
#[must_use]
pub fn strip(glance: &Glance, search: Option<(&Progress, bool)>) -> String {
    let Glance { at_s, planned_s, intended, connected, playing, failed, .. } = *glance;
    let mut out = format!(
        "<p><b>{at_s:.0} of {planned_s:.0} s</b><span>{connected} connected, {playing} playing, \
         {failed} failed, of {intended}</span><span>{} received</span>",
        bit_rate(glance.received_bps)
    );
    if let Some(ratio) = glance.served_ratio {
        let _ = write!(out, "<span>{} served well</span>", percent(ratio));
    }
    if let Some((search, is_over)) = search {
        let _ = write!(out, "<span>{}</span>", escape(&phase(search, is_over)));
    }
    out.push_str("</p>");
    out
}

/// What a search does, and what it knows.
fn phase(search: &Progress, is_over: bool) -> String {
    let bound = |load: Option<u32>| load.map_or_else(|| "?".to_owned(), |load| search.load(load));
    let phase = match search.phase(is_over) {
        SearchPhase::Over => SearchPhase::Over.to_string(),
        held => format!("{held} at {}", search.load(search.users)),
    };
    let (repeat, repeats) = search.repeat;
    format!(
        "search {repeat} of {repeats}: {phase}; between {} and {}",
        bound(search.passing),
        bound(search.failing)
    )
}

#[cfg(test)]
mod tests {
    use throng_observation::Purpose;

    use super::*;

    #[test]
    fn the_strip_has_the_crowd_and_how_far_the_search_is() {
        let glance = Glance {
            at_s: 7.0,
            planned_s: 60.0,
            intended: 5,
            connected: 4,
            playing: 3,
            failed: 1,
            received_bps: 3e6,
            served_ratio: Some(0.5),
        };
        let plain = strip(&glance, None);
        for text in ["7 of 60 s", "4 connected, 3 playing, 1 failed, of 5", "Mbit/s received"] {
            assert!(plain.contains(text), "{text}: {plain}");
        }
        assert!(plain.contains("served well") && !plain.contains("search"), "{plain}");
        let search = Progress {
            purpose: Some(Purpose::Bisect),
            users: 2,
            judged_s: (3, 10),
            is_settling: false,
            passing: Some(1),
            failing: None,
            repeat: (1, 3),
            found: Vec::new(),
            values: vec!["144p".into(), "<240p>".into()],
            end: None,
        };
        for (is_over, text) in [
            (false, "search 1 of 3: bisect, 3 of 10 s judged at &lt;240p&gt;; between 144p and ?"),
            (true, "search 1 of 3: over; between 144p and ?"),
        ] {
            let searching = strip(&glance, Some((&search, is_over)));
            assert!(searching.contains(text), "{searching}");
        }
    }
}
