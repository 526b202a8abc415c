//! The JSON of reports.

use serde::Serialize;
use throng_observation::untrusted;

/// Indented JSON with a newline at the end. A report holds only strings, numbers, lists, and maps
/// with string keys, which all can be written.
pub fn to_json<T: Serialize>(report: &T) -> String {
    let mut json = serde_json::to_string_pretty(report).unwrap_or_default();
    json.push('\n');
    untrusted::json(&json).into_owned()
}
