//! What a `[[watch]]` names on the server's host, in a file: processes, logs, endpoints.

use std::marker::PhantomData;

use serde_json::json;
use throng_observation::Url;
use throng_observation::masked::masked_url;

use crate::keys::{By, Form as _, Parsed, Several, fit, text, text_schema};
use crate::masked::masked_words;
use crate::url_template::WITH_NAMES;

/// Most entries of each list: logs, endpoints, profiles, words of a command.
pub(super) const LIST_MAX: usize = 64;
/// Schemes of endpoints; the part before `+` names the kind, as in a target's URL.
const ENDPOINT: &str = r"^([A-Za-z][A-Za-z0-9.+-]*\+)?([Hh][Tt][Tt][Pp]|[Ww][Ss])[Ss]?:";

pub(super) const PROCESS: Parsed<String> = Parsed {
    parse: |name| if name.contains('/') { Err(" is a path".into()) } else { fit(name) },
    schema: |_| text_schema(r"^[^/\x00]+$"),
    is_removable: false,
    ..text("text", "janus")
};
pub(super) const UNIT: Parsed<String> = Parsed { example: "nginx.service", ..PROCESS };
pub(super) const CGROUP: Parsed<String> = Parsed {
    example: "/system.slice/janus.service",
    parse: |path| match path.is_empty() || path.starts_with('/') {
        true => fit(path),
        false => Err(" is not a path, as /proc/PID/cgroup has it".into()),
    },
    schema: |_| text_schema(r"^/[^\x00]*$"),
    ..PROCESS
};

/// Paths, or words.
pub(super) const fn texts(kind: &'static str, example: &'static str) -> Several<String> {
    Several { of: Parsed { is_removable: false, ..text(kind, example) }, least: 0, most: LIST_MAX }
}

/// Program and arguments.
pub(super) const COMMAND: By<Vec<String>> = By {
    read: |reader, fields, key| WORDS.read(reader, fields, key),
    write: |words| Some(masked_words(words).into()),
    schema: |generator| WORDS.schema(PhantomData, generator),
};
const WORDS: Several<String> =
    Several { least: 1, ..texts("the program and its arguments", "/usr/sbin/nginx") };

/// Endpoints, without their secrets as they are written.
pub(super) const METRICS: Several<String> = Several {
    of: Parsed {
        parse: |text| {
            let scheme = Url::parse(text).map(|url| url.scheme().to_owned()).unwrap_or_default();
            match scheme.rsplit('+').next() {
                Some("http" | "https" | "ws" | "wss") => fit(text),
                _ => Err(" has an entry that is not an HTTP URL".into()),
            }
        },
        write: |url| masked_url(url, WITH_NAMES),
        schema: |_| text_schema(ENDPOINT),
        ..text("URLs", "http://127.0.0.1:9090/metrics")
    },
    least: 0,
    most: LIST_MAX,
};

/// The target's port.
pub(super) const TARGET: By<bool> = By {
    read: |reader, fields, key| {
        let is_watched = reader.boolean(fields, key)?;
        if !is_watched {
            let message = format!("`{}` is false, so that nothing is watched", fields.path_of(key));
            reader.fail(fields.span_of(key), message, "write target = true, or remove the table");
        }
        Some(is_watched)
    },
    write: |is_watched| Some((*is_watched).into()),
    schema: |_| json!({ "const": true }),
};
