//! The same as a chart of Helm. What a share requests follows from the plan of a scenario, which a
//! chart cannot make: it comes with the scenario that it is made for.

use std::io;
use std::path::Path;

use anyhow::anyhow;
use clap::Args as _;
use throng_folder::Folder;
use throng_observation::shell;

use super::base::{self, OPTIONAL, Slot, filled};
use super::scalar::quoted;
use super::{Fleet, of_consent};
use crate::args::Manifest;
use crate::console::{CliError, say};

/// What all names begin with.
pub(super) const RELEASE: &str = "{{ $.Release.Name }}";

/// Of this template only its failure is something: a release may have a name that `--name` of
/// `throng fleet manifest` refuses, and the cluster would refuse what is made of it one by one.
const NAME: &str = r#"{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$" $.Release.Name) }}
{{- fail "name the release by 1 to 40 of a to z, 0 to 9 and -, first a letter, last not a -" }}
{{- end }}
"#;

/// What a value is, and how a template takes it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Text,
    OptionalNumber,
    OptionalText,
    Texts,
}

/// The values: the mark of what they stand for, their name, and what they mean where no flag says
/// it.
const VALUES: [(&str, &str, Kind, &str); 8] = [
    ("--workers", "workers", Kind::Number, ""),
    ("--image", "image", Kind::Text, ""),
    ("--allow-target", "allowTarget", Kind::Texts, ""),
    ("--max-users", "maxUsers", Kind::OptionalNumber, ""),
    ("--consent-secret-name", "consentSecretName", Kind::OptionalText, ""),
    (
        "scenario: cpu",
        "cpu",
        Kind::Text,
        "What a worker requests for the largest of these shares; another number of workers has \
         other shares, and `throng fleet manifest` says what they request",
    ),
    ("scenario: memory", "memory", Kind::Text, "The same of memory, which is its limit, too"),
    (
        "scenario: seconds",
        "activeDeadlineSeconds",
        Kind::Number,
        "Seconds after which a run that goes on is ended",
    ),
];

impl Kind {
    /// The expression of a template, and the action around it.
    fn expression(self, name: &str) -> (String, Option<String>) {
        // Helm reads numbers as floating-point ones, and writes large ones with an exponent.
        match self {
            Self::Number => (format!("{{{{ int64 $.Values.{name} }}}}"), None),
            Self::Text => (format!("{{{{ $.Values.{name} }}}}"), None),
            Self::OptionalNumber => {
                ("{{ int64 . }}".to_owned(), Some(format!("with $.Values.{name}")))
            }
            Self::OptionalText => ("{{ . }}".to_owned(), Some(format!("with $.Values.{name}"))),
            Self::Texts => ("{{ . }}".to_owned(), Some(format!("range $.Values.{name}"))),
        }
    }

    /// As `values.yaml` has it, behind the colon.
    fn written(self, values: &[String]) -> String {
        match (self, values) {
            (Self::Texts, []) => " []".to_owned(),
            (Self::Texts, values) => {
                values.iter().map(|value| format!("\n  - {}", quoted(value))).collect()
            }
            (_, []) => " null".to_owned(),
            (Self::Number | Self::OptionalNumber, [value, ..]) => format!(" {value}"),
            (Self::Text | Self::OptionalText, [value, ..]) => format!(" {}", quoted(value)),
        }
    }
}

/// A file of a chart: its folder in it (empty: the chart's own), its name, its text.
type ChartFile = (&'static str, String, String);

/// Writes the chart into a new folder.
pub(super) fn write(folder: &Path, fleet: &Fleet<'_>) -> Result<(), CliError> {
    let path = folder.display();
    std::fs::create_dir(folder).map_err(|error| {
        CliError::usage(match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("--helm {path}: is there already; a chart goes into a new folder")
            }
            _ => format!("--helm {path}: cannot be made: {error}"),
        })
    })?;
    let put = || {
        let chart = Folder::open(folder)?;
        files(fleet).iter().try_for_each(|(within, name, text)| match *within {
            "" => chart.put(name, text.as_bytes()),
            within => chart.inside(within)?.put(name, text.as_bytes()),
        })
    };
    put().map_err(|error: io::Error| {
        CliError::invalid(anyhow!("--helm {path}: {error}; it is incomplete: remove it"))
    })?;
    let shown = shell::path(folder);
    say(&format!("wrote     {shown}; next: helm install NAME {shown}"));
    Ok(())
}

fn files(fleet: &Fleet<'_>) -> Vec<ChartFile> {
    let (slots, key) = (templated(&fleet.slots), fleet.key);
    // Not a template: the scenario may have anything in it.
    let config = format!(
        "{}  \"{key}\": {{{{ $.Files.Get \"scenario/{key}\" | quote }}}}\n",
        template(base::SCENARIO, &slots)
    );
    let mut files = vec![
        ("", "Chart.yaml".to_owned(), chart_yaml()),
        ("", "values.yaml".to_owned(), values_yaml(&fleet.slots)),
        ("scenario", key.to_owned(), fleet.scenario.to_owned()),
        ("templates", "name.yaml".to_owned(), NAME.to_owned()),
        ("templates", "scenario.yaml".to_owned(), config),
        ("templates", "NOTES.txt".to_owned(), notes(fleet)),
    ];
    let of_base = fleet.files();
    files
        .extend(of_base.map(|(name, text)| ("templates", name.to_owned(), template(text, &slots))));
    files
}

/// A file of the base as a template. What none of its values changes is left out.
fn template(base: &str, slots: &[Slot]) -> String {
    let text = filled(base, slots);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(OPTIONAL));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The slots, of which those of values get them when the chart is installed.
fn templated(slots: &[Slot]) -> Vec<Slot> {
    let later = |slot: &Slot| {
        let value = VALUES.iter().find(|(mark, ..)| *mark == slot.mark());
        let (expression, block) = value.map(|(_, name, kind, _)| kind.expression(name))?;
        Some(slot.later(expression, block))
    };
    // The claim of the run folders outlasts its release.
    let kept = Slot::new("--helm", "keep", ["keep".to_owned()]);
    slots.iter().map(|slot| later(slot).unwrap_or_else(|| slot.clone())).chain([kept]).collect()
}

fn chart_yaml() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "apiVersion: v2\nname: throng-fleet\n\
         description: One crowd of throng, played by several workers\ntype: application\n\
         version: {version}\nappVersion: {}\nkubeVersion: \">=1.29.0-0\"\n",
        quoted(version)
    )
}

fn values_yaml(slots: &[Slot]) -> String {
    let mut text = "# As `throng fleet manifest --helm` was asked.\n".to_owned();
    for (mark, name, kind, about) in VALUES {
        let slot = slots.iter().find(|slot| slot.mark() == mark);
        let values = kind.written(slot.map(Slot::values).unwrap_or_default());
        let about = if about.is_empty() { help(mark) } else { about.to_owned() };
        text += &format!("\n# {about}\n{name}:{values}\n");
    }
    text
}

/// What the help says of a flag, on one line.
fn help(flag: &str) -> String {
    let command = Manifest::augment_args(clap::Command::new("manifest"));
    let of_flag = command.get_arguments().find(|argument| argument.get_long() == flag.get(2..));
    let help = of_flag.and_then(clap::Arg::get_help).map(ToString::to_string);
    help.unwrap_or_default().replace('\n', " ")
}

/// What is said once the chart is installed.
fn notes(fleet: &Fleet<'_>) -> String {
    const NAMESPACE: &str = "{{ $.Release.Namespace }}";
    let secrets = fleet.secrets(Some(NAMESPACE)).into_iter();
    let secrets: String = secrets.map(|secret| format!("  {secret}\n")).collect();
    format!(
        "{{{{ int64 $.Values.workers }}}} workers play {}. Secrets that have to be there, in \
         {NAMESPACE}:\n{secrets}{{{{- with $.Values.consentSecretName }}}}\n  {}\n{{{{- end }}}}\n\
         What the run says:\n  kubectl -n {NAMESPACE} logs --follow job/{RELEASE}-run\n\
         For the next run: helm uninstall, helm install. The claim {RELEASE}-runs stays.\n",
        fleet.key,
        of_consent("{{ . }}"),
    )
}

#[cfg(test)]
#[path = "chart_tests.rs"]
mod tests;
