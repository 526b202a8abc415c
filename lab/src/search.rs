//! Runs `throng find` and reads its answer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use tempfile::TempDir;
use throng_sim::namespace::Namespace;
use throng_sim::priority::BeforeOthers as _;

use crate::agreement;

/// The environment of all planted limits.
pub(crate) struct Lab {
    pub(crate) throng: PathBuf,
    /// Only the answers count, not their accuracy.
    pub(crate) is_short: bool,
    budget: String,
    keep: Option<PathBuf>,
    scratch: TempDir,
}

/// The answer of throng.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// `capacity.verdict`.
    pub(crate) verdict: String,
    pub(crate) users: Option<f64>,
    /// `bottleneck.finding`, empty without one.
    pub(crate) finding: String,
    pub(crate) score: f64,
    /// The explanations of the bottleneck: `bottleneck.other_findings` with that role.
    pub(crate) explained_by: Vec<String>,
    /// Where its prediction contradicts the price of the same run, in a sentence.
    pub(crate) contradiction: Option<String>,
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
        let folder = self.keep.as_deref().unwrap_or(self.scratch.path()).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        command.args([
            "find",
            url,
            "--budget",
            &self.budget,
            "--quiet",
            "--json",
            "--watch",
            watch,
        ]);
        command.args(more).arg("--output").arg(&folder);
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
        Ok(Answer { contradiction, ..answer(&summary) })
    }

    /// What `users` need by the run in `folder`, used to the full.
    fn price(&self, folder: &Path, users: f64) -> anyhow::Result<Value> {
        let viewers = format!("{:.0}", users.floor().max(1.0));
        let mut command = Command::new(&self.throng);
        command.arg("price").arg(folder).args([
            "--viewers",
            &viewers,
            "--target-utilisation",
            "1",
            "--json",
        ]);
        let output = command.output()?;
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
    Answer {
        verdict: text(&summary["capacity"]["verdict"]),
        users: summary["capacity"]["users"].as_f64(),
        finding: text(&summary["bottleneck"]["finding"]),
        score: summary["bottleneck"]["score"].as_f64().unwrap_or(0.0),
        explained_by: summary["bottleneck"]["other_findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|other| other["role"] == "explanation")
            .map(|other| text(&other["finding"]))
            .collect(),
        contradiction: None,
    }
}
