//! What is hidden in a kept file or override, and whether an override gives it again.

use throng_observation::masked::HIDDEN;
use throng_observation::shell;
use throng_scenario::{Override, masked_toml};
use toml::{Table, Value};

/// A value some of which is hidden.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hidden {
    /// Where it is, as `--set` takes it.
    pub(crate) path: String,
    /// A list is one value, in which each item is compared.
    shown: Value,
}

impl Hidden {
    /// Those of a file.
    pub(crate) fn of_file(file: &str) -> Vec<Self> {
        file.parse::<Table>().map(|table| Self::of_table(&table)).unwrap_or_default()
    }

    /// Those of a table whose keys are paths.
    pub(crate) fn of_table(table: &Table) -> Vec<Self> {
        let mut all = Vec::new();
        for (path, value) in table {
            below(path.clone(), value, &mut all);
        }
        all
    }

    /// That of an override, as a whole; `None` if nothing of it is hidden.
    pub(crate) fn of_set(set: &str) -> Option<Self> {
        let set = Override::parse(set).ok()?;
        let shown = set.toml();
        has_hidden(&shown).then_some(Self { path: set.path, shown })
    }

    /// Whether an override gives this value again: at its place in the file, nothing is other than
    /// what is hidden.
    pub(crate) fn is_given_by(&self, set: &Override) -> bool {
        set.path == self.path
            && masked_at(&set.path, set.toml()).is_some_and(|given| is_same(&self.shown, &given))
    }

    /// The flag that gives it again. Where not all of it is secret, as in a URL or a list, all that
    /// is shown of it is to be given, with each secret in place of its `…`.
    pub(crate) fn flag(&self) -> String {
        let Self { path, shown } = self;
        let value = match shown {
            Value::String(text) if text == HIDDEN => "SECRET".to_owned(),
            Value::String(text) => text.clone(),
            whole => whole.to_string(),
        };
        shell::flag("--set", format!("{path}={value}"))
    }
}

/// Whether an override at `set` replaces the value at `path`, or a table with it.
pub(crate) fn covers(set: &str, path: &str) -> bool {
    path.strip_prefix(set).is_some_and(|below| below.is_empty() || below.starts_with('.'))
}

fn below(path: String, value: &Value, all: &mut Vec<Hidden>) {
    match value {
        Value::Table(table) if table.keys().all(|key| is_part(key)) => {
            for (key, value) in table {
                below(format!("{path}.{key}"), value, all);
            }
        }
        Value::Array(items) if items.iter().all(Value::is_table) => {
            for (index, item) in items.iter().enumerate() {
                let name = item.get("name").and_then(Value::as_str).filter(|name| is_part(name));
                let below_item = match name {
                    Some(name) => format!("{path}.{name}"),
                    // Of a single table there is no number.
                    None if items.len() == 1 => path.clone(),
                    None => format!("{path}.{index}"),
                };
                below(below_item, item, all);
            }
        }
        // As a whole: a list, and a table with a key that no path can name.
        value => all.extend(has_hidden(value).then(|| Hidden { path, shown: value.clone() })),
    }
}

/// Whether a key can be a part of a path of `--set`.
fn is_part(key: &str) -> bool {
    !key.is_empty() && key.trim() == key && !key.contains(['.', '='])
}

fn has_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(HIDDEN),
        Value::Array(items) => items.iter().any(has_hidden),
        Value::Table(table) => table.iter().any(|(_, value)| has_hidden(value)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => false,
    }
}

/// A value as the kept copy of a file that has it at `path` shows it: which of its parts are
/// secrets depends on the keys around it.
fn masked_at(path: &str, value: Value) -> Option<Value> {
    let parts: Vec<&str> = path.split('.').map(str::trim).collect();
    let mut file = value;
    for part in parts.iter().rev() {
        let mut table = Table::new();
        table.insert((*part).to_owned(), file);
        file = Value::Table(table);
    }
    let shown = masked_toml(&toml::to_string(&file).ok()?);
    let mut value = Value::Table(shown.parse().ok()?);
    for part in parts {
        let Value::Table(mut table) = value else { return None };
        value = table.remove(part)?;
    }
    Some(value)
}

/// Whether two files, of both of which the secrets are hidden, say the same. What an earlier
/// version hid may be shown now: the `…` of the kept one stands for any one value, within a text
/// for any one word.
pub(crate) fn is_same_file(kept: &str, given: &str) -> bool {
    let table = |text: &str| text.parse::<Table>().ok().map(Value::Table);
    table(kept).zip(table(given)).is_some_and(|(kept, given)| is_same(&kept, &given))
}

/// Whether two values, of both of which the secrets are hidden, are the same. Where all of the kept
/// one is hidden, the other may be a reference to a secret.
fn is_same(kept: &Value, given: &Value) -> bool {
    match (kept, given) {
        (Value::String(text), given) if text == HIDDEN => {
            let is_one = !given.is_array() && !given.is_table();
            is_one || is_all_hidden(given)
        }
        (Value::String(kept), Value::String(given)) => fits(kept, given),
        (Value::Array(kept), Value::Array(given)) => {
            kept.len() == given.len()
                && kept.iter().zip(given).all(|(kept, given)| is_same(kept, given))
        }
        (Value::Table(kept), Value::Table(given)) => {
            let is_in =
                |key: &str, kept: &Value| given.get(key).is_some_and(|given| is_same(kept, given));
            kept.len() == given.len() && kept.iter().all(|(key, kept)| is_in(key.as_str(), kept))
        }
        // A list of one may be written as that one.
        (Value::Array(kept), given) => matches!(kept.as_slice(), [kept] if is_same(kept, given)),
        (kept, Value::Array(given)) => matches!(given.as_slice(), [given] if is_same(kept, given)),
        (kept, given) => kept == given,
    }
}

/// Whether a text is a kept one with words in place of each `…`: what stands around these follows
/// each other in it, from its begin to its end.
fn fits(kept: &str, given: &str) -> bool {
    let mut parts = kept.split(HIDDEN).peekable();
    let Some(mut rest) = parts.next().and_then(|first| given.strip_prefix(first)) else {
        return false;
    };
    while let Some(part) = parts.next() {
        let at = if parts.peek().is_none() {
            rest.strip_suffix(part).map(str::len)
        } else {
            let first = rest.chars().next().map_or(0, char::len_utf8);
            rest.get(first..).and_then(|after| after.find(part)).map(|at| first + at)
        };
        let Some((word, after)) = at.and_then(|at| rest.split_at_checked(at)) else { return false };
        if word.is_empty() || word.contains(char::is_whitespace) {
            return false;
        }
        rest = after.get(part.len()..).unwrap_or_default();
    }
    rest.is_empty()
}

/// Whether a value has nothing but secrets, and words that say where one is.
fn is_all_hidden(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            text == HIDDEN || text.starts_with("env:") || text.starts_with("file:")
        }
        Value::Array(items) => items.iter().all(is_all_hidden),
        Value::Table(table) => table.iter().all(|(_, value)| is_all_hidden(value)),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(all: &[Hidden]) -> Vec<&str> {
        all.iter().map(|hidden| hidden.path.as_str()).collect()
    }

    fn is_given(all: &[Hidden], set: &str) -> bool {
        let set = Override::parse(set).unwrap();
        all.iter().any(|hidden| hidden.is_given_by(&set))
    }

    const FILE: &str = r#"
[target]
token = "S3CRET"
[crowd.player.headers]
X-Session = "S3CRET"
[[watch]]
name = "cam"
command = ["server", "--token", "S3CRET", "--key=S3CRET", "--port", "7080"]
metrics = ["http://me:S3CRET@a/m", "http://me:S3CRET@b/m?token=S3CRET"]
[[watch]]
name = "a.b"
metrics = "http://me:S3CRET@c/m"
[more.headers]
"X.Dotted" = "S3CRET"
Other = "S3CRET"
"#;

    #[test]
    fn a_list_is_given_again_as_a_whole_and_each_item_is_the_same_but_for_its_secret() {
        let all = Hidden::of_file(&masked_toml(FILE));
        let known = [
            "crowd.player.headers.X-Session",
            "more.headers",
            "target.token",
            "watch.1.metrics",
            "watch.cam.command",
            "watch.cam.metrics",
        ];
        let mut found = paths(&all);
        found.sort_unstable();
        assert_eq!(found, known);
        for (set, is_same) in [
            (r#"watch.cam.metrics=["http://u:p@a/m", "http://u:p@b/m?token=t"]"#, true),
            (r#"watch.cam.metrics=["http://u:p@a/m", "http://u:p@c/m?token=t"]"#, false),
            (r#"watch.cam.metrics=["http://u:p@b/m?token=t", "http://u:p@a/m"]"#, false),
            (r#"watch.cam.metrics=["http://u:p@a/m"]"#, false),
            ("watch.cam.metrics=http://u:p@a/m", false),
            (r#"watch.cam.command=["server", "--token", "t", "--key=t", "--port", "7080"]"#, true),
            (
                r#"watch.cam.command=["server", "--token", "env:T", "--key=t", "--port", "7080"]"#,
                true,
            ),
            (r#"watch.cam.command=["other", "--token", "t", "--key=t", "--port", "7080"]"#, false),
            (r#"watch.cam.command=["server", "--token", "t", "--key=t", "--port", "7081"]"#, false),
            (r#"watch.cam.command=["server", "--token", "t", "--key=t"]"#, false),
            ("watch.cam.command=other", false),
            ("watch.1.metrics=http://u:p@c/m", true),
            (r#"watch.1.metrics=["http://u:p@c/m"]"#, true),
            ("target.token=t", true),
            ("target.token=env:T", true),
            ("target.url=t", false),
            ("crowd.player.headers.X-Session=t", true),
            (r#"more.headers={ "X.Dotted" = "t", Other = "t" }"#, true),
            (r#"more.headers={ "X.Dotted" = "t" }"#, false),
            (r#"more.headers={ "X.Dotted" = "t", Another = "t" }"#, false),
        ] {
            assert_eq!(is_given(&all, set), is_same, "{set}");
        }
    }

    #[test]
    fn what_a_kept_file_hides_may_be_any_one_value_of_the_same_file() {
        let file = |words: &str, port: u16| format!("[a]\ncommand = [{words}]\nport = {port}\n");
        let kept = file(r#""srv", "--max-keys", "…""#, 80);
        for (given, is_same) in [
            (file(r#""srv", "--max-keys", "5""#, 80), true),
            (file(r#""srv", "--max-keys", "…""#, 80), true),
            (file(r#""srv", "--max-keys", "5", "-v""#, 80), false),
            (file(r#""srv", "--max-users", "5""#, 80), false),
            (file(r#""srv", "--max-keys", "5""#, 81), false),
            ("[a".to_owned(), false),
        ] {
            assert_eq!(is_same_file(&kept, &given), is_same, "{given}");
        }
    }

    #[test]
    fn what_is_hidden_within_a_text_may_be_any_one_word() {
        for (kept, given, is_same) in [
            ("--max-keys=…", "--max-keys=5", true),
            ("--max-keys=…", "--max-keys=…", true),
            ("--max-keys=…", "--max-keys=", false),
            ("--max-keys=…", "--max-users=5", false),
            ("srv --max-keys …", "srv --max-keys 5", true),
            ("srv --max-keys …", "srv --max-keys 5 --port 80", false),
            ("srv --max-keys … -p 80", "srv --max-keys 5 -p 80", true),
            ("srv --max-keys … -p 80", "srv --max-keys 5 -v -p 80", false),
            ("srv --max-keys … -p 80", "srv --max-keys 5 -p 81", false),
            ("a=… b=… c", "a=1 b=2 c", true),
            ("a=… b=… c", "a=1 c=2 c", false),
            ("http://…@a/m", "http://…@c/m", false),
            ("srv", "srv", true),
            ("srv", "srv -v", false),
        ] {
            let file = |word: &str| format!("command = [\"{word}\"]\n");
            assert_eq!(is_same_file(&file(kept), &file(given)), is_same, "{kept}: {given}");
        }
        let all = [Hidden::of_set("watch.command=srv --max-keys …").unwrap()];
        assert!(is_given(&all, "watch.command=srv --max-keys 5"));
        assert!(!is_given(&all, "watch.command=other --max-keys 5"));
    }

    #[test]
    fn an_override_is_compared_in_the_same_way() {
        let kept = throng_scenario::masked_override(
            r#"watch.metrics=["http://me:S3CRET@a/m", "http://me:S3CRET@b/m"]"#,
        );
        let all: Vec<Hidden> = Hidden::of_set(&kept).into_iter().collect();
        assert!(is_given(&all, r#"watch.metrics=["http://u:p@a/m","http://u:p@b/m"]"#));
        assert!(!is_given(&all, r#"watch.metrics=["http://u:p@a/m","http://u:p@c/m"]"#));
        let headers = Hidden::of_set("crowd.player.headers=…").unwrap();
        let all = [headers];
        assert!(is_given(&all, r#"crowd.player.headers={ X = "t", Y = "env:T" }"#));
        assert_eq!(Hidden::of_set("crowd.size=5"), None);
    }

    #[test]
    fn a_flag_has_what_is_shown_of_its_value() {
        let all = Hidden::of_file(&masked_toml(FILE));
        let flag = |path: &str| all.iter().find(|one| one.path == path).map(Hidden::flag).unwrap();
        assert_eq!(flag("target.token"), "--set target.token=SECRET");
        assert_eq!(
            flag("watch.cam.metrics"),
            r#"--set 'watch.cam.metrics=["http://…@a/m", "http://…@b/m?token=…"]'"#
        );
        assert_eq!(flag("watch.1.metrics"), "--set 'watch.1.metrics=http://…@c/m'");
    }

    #[test]
    fn an_override_covers_what_is_below_it() {
        for (set, path, is_covered) in [
            ("watch.metrics", "watch.metrics", true),
            ("watch", "watch.metrics", true),
            ("watch.met", "watch.metrics", false),
            ("watch.metrics.0", "watch.metrics", false),
        ] {
            assert_eq!(covers(set, path), is_covered, "{set} {path}");
        }
    }
}
