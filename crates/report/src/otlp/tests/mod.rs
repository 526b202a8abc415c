//! The documents equal those written by hand from the protocol (`opentelemetry-proto` 1.x, its JSON
//! encoding), and what is traced is bounded.

mod metrics;
mod rows;
mod traces;

use serde_json::Value;

use super::*;

fn resource() -> Resource {
    Resource::new("1.2.3", "0002a").with("deployment.environment", "lab")
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}
