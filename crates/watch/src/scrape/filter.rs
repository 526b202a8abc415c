//! Selects which metrics of an endpoint are kept.

use throng_observation::pack::{KnownEndpoint, glob_matches};

/// Globs on metric names. Denied metrics are dropped; of the rest the allowed ones are kept, or all
/// if none is listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Metrics to keep; empty means all.
    pub allow: Vec<String>,
    /// Metrics to drop.
    pub deny: Vec<String>,
}

impl Filter {
    /// The filter that a pack defines for an endpoint.
    #[must_use]
    pub fn of_pack(endpoint: &KnownEndpoint) -> Self {
        Self {
            allow: endpoint.series.iter().map(|series| series.name.clone()).collect(),
            deny: endpoint.deny.clone(),
        }
    }

    /// The default for an unknown server: everything except numerous metrics of little value
    /// (buckets, creation times, the Go runtime's internals).
    #[must_use]
    pub fn for_any() -> Self {
        let deny = ["*_bucket", "*_created", "go_memstats_*", "go_sched_*", "promhttp_*", "*_info"];
        Self { allow: Vec::new(), deny: deny.iter().map(|glob| (*glob).to_owned()).collect() }
    }

    /// Whether to keep the metric with this name.
    #[must_use]
    pub fn keeps(&self, name: &str) -> bool {
        !self.deny.iter().any(|glob| glob_matches(glob, name))
            && (self.allow.is_empty() || self.allow.iter().any(|glob| glob_matches(glob, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_takes_precedence_over_allow() {
        let filter = Filter { allow: vec!["x_*".into()], deny: vec!["*_bucket".into()] };
        assert!(filter.keeps("x_total") && !filter.keeps("x_bucket") && !filter.keeps("y"));
        assert!(Filter::default().keeps("anything"));
        assert!(
            !Filter::for_any().keeps("http_bucket")
                && Filter::for_any().keeps("http_requests_total")
        );
    }
}
