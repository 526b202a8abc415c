//! Selects which metrics of an endpoint are kept, and as what.

use throng_observation::pack::{KnownEndpoint, glob_matches};

/// Globs on metric names. Denied metrics are dropped; of the rest the allowed ones are kept, or all
/// if none is listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Metrics to keep; empty means all.
    pub allow: Vec<String>,
    /// Metrics to drop.
    pub deny: Vec<String>,
    /// Metrics that only grow, where the endpoint does not say so.
    pub counters: Vec<String>,
    /// Labels to drop; series that differ in nothing else are added up.
    pub dropped_labels: Vec<String>,
}

impl Filter {
    /// The filter that a pack defines for an endpoint.
    #[must_use]
    pub fn of_pack(endpoint: &KnownEndpoint) -> Self {
        Self {
            allow: endpoint.series.iter().map(|series| series.name.clone()).collect(),
            deny: endpoint.deny.clone(),
            counters: endpoint.counters.clone(),
            dropped_labels: endpoint.drop_labels.clone(),
        }
    }

    /// The default for an unknown server: everything except numerous metrics of little value
    /// (buckets, creation times, the Go runtime's internals).
    #[must_use]
    pub fn for_any() -> Self {
        let deny = ["*_bucket", "*_created", "go_memstats_*", "go_sched_*", "promhttp_*", "*_info"];
        Self { deny: deny.iter().map(|glob| (*glob).to_owned()).collect(), ..Self::default() }
    }

    /// Whether the pack says that this metric is a counter.
    #[must_use]
    pub fn counts(&self, name: &str) -> bool {
        self.counters.iter().any(|glob| glob_matches(glob, name))
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
        let (allow, deny) = (vec!["x_*".into()], vec!["*_bucket".into()]);
        let filter = Filter { allow, deny, ..Filter::default() };
        assert!(filter.keeps("x_total") && !filter.keeps("x_bucket") && !filter.keeps("y"));
        assert!(Filter::default().keeps("anything"));
        assert!(
            !Filter::for_any().keeps("http_bucket")
                && Filter::for_any().keeps("http_requests_total")
        );
    }
}
