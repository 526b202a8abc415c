//! GStreamer's libraries, for one of the transports of `throng ipc` (docs/ipc.md).

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    Check {
        name: "gstreamer",
        found: facts.gstreamer.as_ref().map_or_else(String::clone, |()| "can be loaded".into()),
        verdict: Verdict::unless(facts.gstreamer.is_ok(), "`throng ipc` cannot measure GStreamer"),
        change: "`apt-get install gstreamer1.0-plugins-base gstreamer1.0-plugins-bad`".to_owned(),
    }
}
