//! Open files: a viewer has a socket for media and one for signalling.

use throng_engine::preflight::MORE_DESCRIPTORS;

use super::{Check, Facts, Verdict};

pub(super) fn check(facts: &Facts) -> Check {
    let allowed = facts.limits.descriptors;
    let (most, verdict) = match allowed {
        u64::MAX => ("any number".to_owned(), Verdict::Ok),
        allowed => {
            let viewers = facts.limits.by_descriptors(&facts.needs);
            (allowed.to_string(), Verdict::Limits { viewers })
        }
    };
    Check {
        name: "open-files",
        found: match facts.descriptors_soft {
            soft if soft < allowed => format!("{most} (soft limit {soft}, which throng raises)"),
            _ => most,
        },
        verdict,
        change: MORE_DESCRIPTORS.to_owned(),
    }
}
