//! Reads a scenario: TOML syntax, overrides, keys and units, then the checks of values against each
//! other.

use crate::consent::named_urls;
use crate::diagnostic::ScenarioError;
use crate::flags::{Override, ScenarioFlags};
use crate::keys::{self, Keyed as _};
use crate::objective::Objective;
use crate::run::{Caps, OutputConfig, RunTimes, Stream};
use crate::scenario::{Cohort, Scenario};
use crate::source::Source;
use crate::target::{Part, Target, is_loopback};

mod tree;
use tree::Sources;
pub(crate) use tree::{Entry, Node, Span, Value, may_be_parsed};
mod fields;
pub(crate) use fields::{Fields, Reader, TOP_KEYS};
pub(crate) mod har;
pub(crate) mod http;
use fields::Form;
mod canary;
mod chat;
mod conference;
mod crowd;
mod destination;
mod limits;
mod matrix;
#[cfg(test)]
mod message_tests;
pub(crate) mod peers;
mod player;
mod prices;
mod target;
pub(crate) use target::{target_url, token};
#[cfg(test)]
mod tests;
mod watch;
#[cfg(test)]
mod watch_tests;

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// With all errors that were found, each with its location and a hint.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Self::parse_with(text, &[])
    }

    /// Reads a scenario file with `overrides` applied in order: the last one of a path wins.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_with(text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        read(text, overrides, Form::Asked)
    }

    /// Reads the output of [`Self::to_toml`], to evaluate the run that it was stored with: redacted
    /// tokens (`…`) are not errors. The result cannot be run.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_stored(text: &str) -> Result<Self, ScenarioError> {
        read(text, &[], Form::Written)
    }

    /// Reads a file of which [`crate::masked_toml`] has hidden the secrets, with overrides of which
    /// they are hidden too, to evaluate a run of it. The result cannot be run.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_masked(text: &str, overrides: &[Override]) -> Result<Self, ScenarioError> {
        read(text, overrides, Form::Masked)
    }

    /// The scenario of a command line without a file: an empty file with overrides.
    ///
    /// # Errors
    /// As [`Self::parse`]; the locations are flags.
    pub fn from_flags(flags: &ScenarioFlags) -> Result<Self, ScenarioError> {
        Self::parse_with("", &flags.overrides())
    }
}

/// What `of` reads of a file that is no scenario, with all that is wrong in it.
fn document<T>(
    text: &str,
    of: impl FnOnce(&mut Reader, &mut Fields<'_>) -> Option<T>,
) -> Result<T, ScenarioError> {
    let root = tree::parse(text).map_err(|diagnostics| ScenarioError { diagnostics })?;
    let mut reader = Reader::new(Sources::new(text, &[]));
    let mut top = Fields::new("", None, &root);
    let read = of(&mut reader, &mut top);
    reader.finish(&top);
    match read.filter(|_| reader.is_clean()) {
        Some(read) => Ok(read),
        None => Err(ScenarioError { diagnostics: reader.into_diagnostics() }),
    }
}

fn read(text: &str, overrides: &[Override], form: Form) -> Result<Scenario, ScenarioError> {
    let mut root = tree::parse(text).map_err(|diagnostics| ScenarioError { diagnostics })?;
    let host_of_file = target::host_of_file(&root);
    let mut reader = Reader::new(Sources::new(text, overrides));
    reader.form = form;
    for (index, over) in overrides.iter().enumerate() {
        if let Err((span, message, help)) = tree::apply(&mut root, over, index + 1) {
            reader.fail(span, message, help);
        }
    }
    let mut fields = Fields::new("", None, &root);
    let target = target::target(&mut reader, &mut fields, host_of_file.as_deref());
    let default_name = target.as_ref().map_or(Part::Watch, Target::part).participants();
    let (mut crowd, cohorts) = crowd::crowd(&mut reader, &mut fields, default_name);
    let run = keys::section(&mut reader, &mut fields, "run", RunTimes::usual());
    let stream = keys::section(&mut reader, &mut fields, "stream", Stream::usual());
    let conversation =
        keys::optional(&mut reader, &mut fields, "conversation", "a table `[conversation]`");
    let room = keys::optional(&mut reader, &mut fields, "room", "a table `[room]`");
    let objectives = objectives(&mut reader, &mut fields);
    let port = target.as_ref().map(|target| target.host_and_port().1);
    let watch = watch::watches(&mut reader, &mut fields, port);
    let tap = "a table such as { participants = 3 }";
    let tap = keys::optional(&mut reader, &mut fields, "tap", tap);
    let canary = "a table such as { browsers = 1 }";
    let canary = keys::optional(&mut reader, &mut fields, "canary", canary);
    let output = keys::section(&mut reader, &mut fields, "output", OutputConfig::usual());
    let caps = caps(&mut reader, &mut fields, target.as_ref(), &crowd);
    reader.finish(&fields);
    let Some(target) = target.filter(|_| reader.is_clean()) else {
        return Err(ScenarioError { diagnostics: reader.into_diagnostics() });
    };
    destination::check(&mut reader, &target, &mut crowd, &cohorts);
    let scenario = Scenario {
        target,
        crowd,
        run,
        stream,
        conversation,
        room,
        watch,
        tap,
        canary,
        objectives,
        output,
        caps,
        source: Source::new(text, overrides),
    };
    watch::check(&mut reader, &scenario, fields.span_of("watch"));
    canary::check(&mut reader, &scenario, fields.span_of("canary"));
    conference::check(&mut reader, &scenario, &mut fields, &cohorts);
    player::check_target(
        &mut reader,
        &scenario,
        &cohorts.iter().map(|spans| spans.player).collect::<Vec<_>>(),
    );
    let chats: Vec<_> = cohorts.iter().map(|spans| (spans.cohort, spans.chat)).collect();
    chat::check_target(&mut reader, &scenario, &chats);
    limits::check(&mut reader, &scenario, &fields, &cohorts);
    if !reader.is_clean() {
        return Err(ScenarioError { diagnostics: reader.into_diagnostics() });
    }
    Ok(scenario)
}

fn objectives(reader: &mut Reader, top: &mut Fields<'_>) -> Vec<Objective> {
    let mut objectives = Vec::new();
    for (text, node) in reader.texts(top, "objectives", "a list such as [\"video.loss p95 < 1%\"]")
    {
        match text.parse::<Objective>() {
            Ok(objective) => objectives.push(objective),
            Err(error) => {
                reader.fail(reader.span_within(node, &text, error.span), error.message, error.help);
            }
        }
    }
    objectives
}

/// The limits in force: those of the scenario, else the defaults, of which loopback targets have
/// none, unless a cohort names a server elsewhere.
fn caps(
    reader: &mut Reader,
    top: &mut Fields<'_>,
    target: Option<&Target>,
    crowd: &[Cohort],
) -> Caps {
    let roles = crowd.iter().filter_map(|cohort| cohort.role.as_ref());
    let is_here = roles.flat_map(named_urls).all(|(_, url)| is_loopback(url));
    let default =
        if is_here && target.is_some_and(Target::is_loopback) { Caps::NONE } else { Caps::DEFAULT };
    keys::section(reader, top, "caps", default)
}

/// The scenario of one cohort with these `keys`, on `url`, for tests; what it is written as is read
/// as the same.
#[cfg(test)]
pub(super) fn read_cohort(url: &str, keys: &str) -> Result<Scenario, String> {
    let text = format!(
        "[target]\nurl = \"{url}\"\n[run]\nduration = \"20s\"\n[crowd]\nsize = 3\n{keys}\n"
    );
    let scenario = Scenario::parse(&text).map_err(|error| error.to_string())?;
    let again = Scenario::parse(&scenario.to_toml()).map_err(|error| error.to_string())?;
    assert_eq!(again.crowd, scenario.crowd, "{}", scenario.to_toml());
    Ok(scenario)
}
