//! Flags of the command line as overrides of a scenario file.

use crate::diagnostic::{Diagnostic, Location, Origin, ScenarioError};
use crate::masked::Mask;
use crate::read::{TOP_KEYS, may_be_parsed};
use crate::secret::HIDDEN;
use crate::watch;

/// A value that replaces or adds one of the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Dotted path, such as `crowd.size`, or `crowd.NAME.size` with several cohorts.
    pub path: String,
    /// The value: TOML, or plain text where text is expected.
    pub value: String,
    /// The flag that errors name, such as `--set crowd.size`.
    pub origin: String,
    /// The value is text, whatever it looks like.
    pub is_text: bool,
}

impl Override {
    /// Parses the `PATH=VALUE` of `--set`.
    ///
    /// # Errors
    /// Without a `=`, or with nothing before it, or a URL, which has no `target.url=`. What may be
    /// a secret is not in the error.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        match text.split_once('=').map(|(path, value)| (path.trim(), value)) {
            Some((path, value)) if !path.is_empty() && !path.contains("://") => Ok(Self {
                path: path.to_owned(),
                value: value.trim().to_owned(),
                origin: format!("--set {path}"),
                is_text: false,
            }),
            _ => Err(no_override(text)),
        }
    }

    /// The value as a scenario reads it: TOML on one line, or text.
    #[must_use]
    pub fn toml(&self) -> toml::Value {
        const KEY: &str = "v";
        let document = format!("{KEY} = {}", self.value);
        let is_toml = !self.is_text && !self.value.contains('\n') && may_be_parsed(&document);
        let table = is_toml.then(|| document.parse::<toml::Table>().ok()).flatten();
        let value = table.and_then(|mut table| table.remove(KEY));
        value.unwrap_or_else(|| toml::Value::String(self.value.clone()))
    }

    /// A flag with a text value, such as `--every 100ms` for `crowd.arrival.every`.
    #[must_use]
    pub fn flag(flag: &str, path: &str, value: &str) -> Self {
        Self {
            path: path.to_owned(),
            value: value.to_owned(),
            origin: flag.to_owned(),
            is_text: true,
        }
    }

    /// A flag with a TOML value (a list, a number, `true`).
    #[must_use]
    pub fn flag_toml(flag: &str, path: &str, toml: &str) -> Self {
        Self {
            path: path.to_owned(),
            value: toml.to_owned(),
            origin: flag.to_owned(),
            is_text: false,
        }
    }
}

/// The error of a `--set` that has no path. It may be a secret that stands in the wrong place, so
/// no more is shown than a path of a scenario.
fn no_override(text: &str) -> ScenarioError {
    let is_in_path = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let end = text.find(|c: char| !is_in_path(c)).unwrap_or(text.len());
    let path = text.get(..end).unwrap_or_default();
    let is_known = path.split('.').next().is_some_and(|first| TOP_KEYS.contains(&first));
    let (path, rest) = if is_known { text.split_at(end) } else { ("", text) };
    let shown = format!("{path}{}", if rest.is_empty() { "" } else { HIDDEN });
    let origin = Origin::Override("--set".into());
    let location = Location::of(origin, (&shown, &Mask::default()), 0, shown.len());
    ScenarioError {
        diagnostics: vec![Diagnostic {
            location: Some(location),
            message: format!("`--set {shown}` is not PATH=VALUE"),
            help: Some("write for example --set crowd.size=50".into()),
        }],
    }
}

/// A scenario as flags of the command line, unparsed, so that errors can quote them. Absent flags
/// have the defaults of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioFlags {
    /// The target URL.
    pub url: String,
    /// `-n`: number of participants; 1 when absent.
    pub size: Option<u32>,
    /// `--every`: interval between joins, such as `100ms`.
    pub every: Option<String>,
    /// `--for`: length of the run, such as `60s`.
    pub duration: Option<String>,
    /// `--summary`: interval of summaries, such as `5s`.
    pub summary_every: Option<String>,
    /// `--warm-up`: time at the start that media objectives exclude.
    pub warm_up: Option<String>,
    /// `--token`: the token, `env:NAME` or `file:PATH`.
    pub token: Option<String>,
    /// `--streams`: number of streams for `{stream}` in the URL.
    pub streams: Option<u32>,
    /// `--allow-target`: private networks that are allowed.
    pub allow: Vec<String>,
    /// `--source-ip`: local addresses or ranges.
    pub source_ips: Vec<String>,
    /// `--objective`: objectives.
    pub objectives: Vec<String>,
    /// `--watch`: the monitored processes, such as `process=janus` or `port=8188,every=100ms`.
    pub watch: Vec<String>,
    /// `--tap`: number of tapped participants.
    pub tap: Option<u32>,
    /// `--tls-insecure`.
    pub tls_insecure: bool,
    /// `--output`: the run folder.
    pub folder: Option<String>,
    /// `--csv`.
    pub csv: bool,
    /// `--set`: any other key of the file.
    pub set: Vec<Override>,
}

impl ScenarioFlags {
    /// The overrides of an empty file that these flags mean.
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        let mut all = vec![
            Override::flag("the URL", "target.url", &self.url),
            Override::flag_toml("-n", "crowd.size", &self.size.unwrap_or(1).to_string()),
        ];
        let texts = [
            ("--every", "crowd.arrival.every", &self.every),
            ("--for", "run.duration", &self.duration),
            ("--summary", "run.summary_every", &self.summary_every),
            ("--warm-up", "run.warm_up", &self.warm_up),
            ("--token", "target.token", &self.token),
            ("--output", "output.folder", &self.folder),
        ];
        for (flag, path, value) in texts {
            all.extend(value.as_ref().map(|value| Override::flag(flag, path, value)));
        }
        let lists = [
            ("--allow-target", "target.allow", &self.allow),
            ("--source-ip", "crowd.source_ips", &self.source_ips),
            ("--objective", "objectives", &self.objectives),
        ];
        for (flag, path, values) in lists {
            if !values.is_empty() {
                all.push(Override::flag_toml(flag, path, &toml_list(values)));
            }
        }
        if !self.watch.is_empty() {
            let tables: Vec<String> =
                self.watch.iter().map(|text| watch::inline_table(text)).collect();
            all.push(Override::flag_toml("--watch", "watch", &format!("[{}]", tables.join(", "))));
        }
        all.extend(
            self.streams
                .map(|count| Override::flag_toml("--streams", "crowd.streams", &count.to_string())),
        );
        all.extend(
            self.tap
                .map(|count| Override::flag_toml("--tap", "tap.participants", &count.to_string())),
        );
        for (flag, path, is_set) in [
            ("--tls-insecure", "target.tls_insecure", self.tls_insecure),
            ("--csv", "output.csv", self.csv),
        ] {
            if is_set {
                all.push(Override::flag_toml(flag, path, "true"));
            }
        }
        all.extend(self.set.iter().cloned());
        all
    }
}

/// A TOML list of texts.
fn toml_list(texts: &[String]) -> String {
    toml::Value::Array(texts.iter().cloned().map(toml::Value::String).collect()).to_string()
}
