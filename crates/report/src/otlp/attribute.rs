//! Attributes: `KeyValue` of the protocol.

use serde_json::{Value, json};
use throng_observation::masked::masked;
use throng_observation::untrusted;

/// A text that others may have chosen: on one line, of bounded length, without secrets of URLs.
pub(super) fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": shown(value) } })
}

/// A text of throng, or one that is safe already.
pub(super) fn plain(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// A whole number, which is a string in the JSON mapping of Protobuf.
pub(super) fn whole(key: &str, value: impl Into<i64>) -> Value {
    json!({ "key": key, "value": { "intValue": value.into().to_string() } })
}

/// A number.
pub(super) fn number(key: &str, value: f64) -> Value {
    json!({ "key": key, "value": { "doubleValue": double(value) } })
}

/// A `double` in the JSON mapping of Protobuf, which JSON itself does not have all of.
pub(super) fn double(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(value)
    }
}

/// Text that others wrote, as it is sent.
pub(super) fn shown(text: &str) -> String {
    untrusted::line(&masked(text)).into_owned()
}
