//! Runs `throng find` and reads its answer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use tempfile::TempDir;
use throng_sim::agreement;
use throng_sim::namespace::Namespace;
use throng_sim::priority::BeforeOthers as _;

/// The environment of all planted limits.
pub(crate) struct Lab {
    pub(crate) throng: PathBuf,
    /// Only the answers count, not their accuracy.
    pub(crate) is_short: bool,
    budget: String,
    keep: Option<PathBuf>,
    scratch: TempDir,
}

/// The verdict of a plain run, which searches no capacity.
pub(crate) const RUN: &str = "run";

/// The answer of throng.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// `capacity.verdict`; [`RUN`] of a plain run.
    pub(crate) verdict: String,
    pub(crate) users: Option<f64>,
    /// `bottleneck.finding`, empty without one.
    pub(crate) finding: String,
    pub(crate) score: f64,
    /// The explanations of the bottleneck: `bottleneck.other_findings` with that role.
    pub(crate) explained_by: Vec<String>,
    /// Why it is wrong whatever it names, in a sentence: its prediction contradicts the price of
    /// the same run, or it says what it must not, or not what it must.
    pub(crate) objection: Option<String>,
    /// `bottleneck` and `capacity` of the summary, in which sentences are looked for.
    pub(crate) said: String,
}

impl Answer {
    /// Objects if it names `finding` (empty: none) without all of these words. What it names
    /// instead is judged as such.
    #[must_use]
    pub(crate) fn saying(self, finding: &str, words: &[&str]) -> Self {
        let missing = words.iter().find(|words| !self.said.contains(**words));
        let objection = missing.filter(|_| self.finding == finding);
        self.objecting(objection.map(|words| format!("it does not say “{words}”")))
    }

    /// Objects if it says any of these words, wherever: in the cause, in what to change, in other
    /// findings, in what is ruled out or in the capacity.
    #[must_use]
    pub(crate) fn never_saying(self, words: &[&str]) -> Self {
        let said = words.iter().find(|words| self.said.contains(**words));
        self.objecting(said.map(|words| format!("it says “{words}”")))
    }

    fn objecting(self, objection: Option<String>) -> Self {
        Self { objection: self.objection.or(objection), ..self }
    }
}

/// An answer and the measured true limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) answer: Answer,
    /// The crowd at which the planted limit is reached, if known.
    pub(crate) truth: Option<f64>,
}

impl Lab {
    pub(crate) fn new(
        throng: &Path,
        is_short: bool,
        budget: String,
        keep: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let throng = throng
            .canonicalize()
            .with_context(|| format!("{}: build it first", throng.display()))?;
        Ok(Self { throng, is_short, budget, keep, scratch: tempfile::tempdir()? })
    }

    /// A command that runs throng, inside of `namespace` if there is one.
    pub(crate) fn command(&self, namespace: Option<&Namespace>) -> Command {
        match namespace {
            Some(namespace) => namespace.command(&self.throng.display().to_string()),
            None => Command::new(&self.throng),
        }
    }

    /// Searches for the limit of `url`; `more` are further arguments, `watch` selects the process
    /// to watch.
    pub(crate) fn find(
        &self,
        namespace: Option<&Namespace>,
        name: &str,
        url: &str,
        watch: &str,
        more: &[&str],
    ) -> anyhow::Result<Answer> {
        self.find_by(self.command(namespace), name, url, watch, more)
    }

    /// Like [`Self::find`], with a given command for throng.
    pub(crate) fn find_by(
        &self,
        mut command: Command,
        name: &str,
        url: &str,
        watch: &str,
        more: &[&str],
    ) -> anyhow::Result<Answer> {
        command.args(["find", url, "--budget", &self.budget, "--watch", watch]).args(more);
        self.answered(command, name)
    }

    /// A plain run on `url`, whose crowd and length `more` says.
    pub(crate) fn view(
        &self,
        namespace: Option<&Namespace>,
        name: &str,
        url: &str,
        watch: &str,
        more: &[&str],
    ) -> anyhow::Result<Answer> {
        let mut command = self.command(namespace);
        command.args(["view", url, "--watch", watch]).args(more);
        self.answered(command, name)
    }

    /// Runs it into the folder `name`, and reads its answer.
    fn answered(&self, mut command: Command, name: &str) -> anyhow::Result<Answer> {
        let folder = self.keep.as_deref().unwrap_or(self.scratch.path()).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        command.args(["--quiet", "--json", "--output"]).arg(&folder);
        let output = match self.is_short {
            // As in `make test`, beside other tests.
            true => command.output_before_others()?,
            false => command.output()?,
        };
        let said = String::from_utf8_lossy(&output.stderr);
        let summary: Value =
            serde_json::from_slice(&output.stdout).with_context(|| said.into_owned())?;
        let contradiction = match agreement::predicted(&summary) {
            Some(users) => agreement::contradiction(&summary, &self.price(&folder, users)?),
            None => None,
        };
        Ok(answer(&summary).objecting(contradiction))
    }

    /// What `users` need by the run in `folder`, used to the full.
    fn price(&self, folder: &Path, users: f64) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.throng);
        let output = command.arg("price").arg(folder).args(agreement::price_of(users)).output()?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The rate of one viewer of `url`, bits per second on the wire. Loopback, or addresses of the
    /// lab.
    pub(crate) fn bits_per_viewer(
        &self,
        namespace: Option<&Namespace>,
        url: &str,
    ) -> anyhow::Result<f64> {
        let viewers = 5;
        Ok(self.bits(namespace, url, viewers, &[])? / f64::from(viewers))
    }

    /// The rate of a complete crowd of `size`, bits per second on the wire.
    pub(crate) fn bits(
        &self,
        namespace: Option<&Namespace>,
        url: &str,
        size: u32,
        more: &[&str],
    ) -> anyhow::Result<f64> {
        let folder = self.scratch.path().join("probe");
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = self.command(namespace);
        command.args([
            "view",
            url,
            "-n",
            &size.to_string(),
            "--for",
            "10s",
            "--warm-up",
            "4s",
            "--quiet",
            "--json",
        ]);
        command.args(["--allow-target", "10.78.0.0/16"]).args(more).arg("--output");
        let output = command.arg(&folder).output()?;
        let summary: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let received = summary["received_bps"].as_f64().unwrap_or(0.0);
        ensure!(received > 0.0, "the probe received nothing");
        Ok(received)
    }
}

fn answer(summary: &Value) -> Answer {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (capacity, bottleneck) = (&summary["capacity"], &summary["bottleneck"]);
    Answer {
        verdict: if capacity.is_null() { RUN.to_owned() } else { text(&capacity["verdict"]) },
        users: capacity["users"].as_f64(),
        finding: text(&bottleneck["finding"]),
        score: bottleneck["score"].as_f64().unwrap_or(0.0),
        explained_by: bottleneck["other_findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|other| other["role"] == "explanation")
            .map(|other| text(&other["finding"]))
            .collect(),
        objection: None,
        said: format!("{bottleneck} {capacity}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_objected_to_for_what_it_says_and_for_what_it_leaves_out() {
        let summary = json!({ "bottleneck": {
            "finding": "memory", "score": 100.0,
            "title": "The kernel killed media (PID 7) for lack of memory",
            "ruled_out": ["a crash under load is a bug"],
        } });
        let objection = |with: fn(Answer) -> Answer| with(answer(&summary)).objection;
        assert_eq!(answer(&summary).verdict, RUN);
        assert_eq!(objection(|answer| answer.saying("memory", &["The kernel killed"])), None);
        let expect = "it does not say “fit 20”";
        let said = objection(|answer| answer.saying("memory", &["killed", "fit 20"]));
        assert_eq!(said.as_deref(), Some(expect));
        assert_eq!(objection(|answer| answer.saying("cpu_full", &["fit 20"])), None, "not named");
        let expect = "it says “is a bug”";
        let said = objection(|answer| answer.never_saying(&["taskset", "is a bug"]));
        assert_eq!(said.as_deref(), Some(expect));
        assert_eq!(objection(|answer| answer.never_saying(&["taskset"])), None);
    }

    #[test]
    fn a_search_that_names_nothing_can_be_asked_for_its_notes() {
        let note = "at the smallest crowd already: delay 290 ms";
        let summary = json!({ "capacity": { "verdict": "at_least", "notes": [note] } });
        let answer = answer(&summary).saying("", &["at the smallest crowd already"]);
        assert_eq!((answer.verdict.as_str(), answer.objection), ("at_least", None));
    }
}
