//! Which metrics of an endpoint are kept.

use throng_observation::pack::{KnownEndpoint, glob_matches};

/// Globs on the names of metrics. What is denied is not kept; else what is allowed is; with nothing allowed all are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// What is kept; all where it is empty.
    pub allow: Vec<String>,
    /// What is never kept.
    pub deny: Vec<String>,
}

impl Filter {
    /// What a pack says matters.
    #[must_use]
    pub fn of_pack(endpoint: &KnownEndpoint) -> Self {
        Self {
            allow: endpoint.series.iter().map(|series| series.name.clone()).collect(),
            deny: endpoint.deny.clone(),
        }
    }

    /// Without knowledge of the server: everything but what is many and says little by itself (buckets, creation times,
    /// the Go runtime's inner life).
    #[must_use]
    pub fn for_any() -> Self {
        let deny = ["*_bucket", "*_created", "go_memstats_*", "go_sched_*", "promhttp_*", "*_info"];
        Self { allow: Vec::new(), deny: deny.iter().map(|glob| (*glob).to_owned()).collect() }
    }

    /// Whether the metric of that name is kept.
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
    fn denying_outweighs_allowing() {
        let filter = Filter { allow: vec!["x_*".into()], deny: vec!["*_bucket".into()] };
        assert!(filter.keeps("x_total") && !filter.keeps("x_bucket") && !filter.keeps("y"));
        assert!(Filter::default().keeps("anything"));
        assert!(!Filter::for_any().keeps("http_bucket") && Filter::for_any().keeps("http_requests_total"));
    }
}
