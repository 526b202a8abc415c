//! What a run was asked to do, kept in its folder so that it can be done again: `scenario.toml`, as
//! it was asked with overrides applied, and `command.json`, the flags that are not part of it. No
//! secret is in either.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};
use throng_scenario::{Plan, Scenario, TokenSource};
use throng_store::RunFolder;

use super::folder_kind::DATABASE;
use super::hidden::Hidden;
use super::own::check_own;
use super::summary_file;
use crate::args::{Common, Find, ReceiveWay, Run};
use crate::console::{CliError, say};
use crate::{media, run_id};

const FILE: &str = "command.json";
pub(crate) const SCENARIO: &str = "scenario.toml";
/// The format of `command.json`.
const FORMAT: u32 = 1;
/// The flag of the secret of a consent proof.
pub(crate) const CONSENT: &str = "--consent-secret";

/// A media file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MediaHash {
    pub(crate) path: PathBuf,
    /// SHA-256, hexadecimal; `null` if it could not be read.
    pub(crate) sha256: Option<String>,
}

/// What a run was asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeptCommand {
    format: u32,
    /// `run`, `view` or `find`.
    command: String,
    /// The name of the scenario's file without its ending, or the target.
    scenario_name: String,
    /// Paths of media files in the scenario are relative to it.
    pub(crate) working_folder: Option<PathBuf>,
    pub(crate) threads: Option<usize>,
    #[serde(default)]
    pub(crate) receive: ReceiveWay,
    pub(crate) tls_ca: Option<PathBuf>,
    pub(crate) packs: Option<PathBuf>,
    #[serde(default)]
    pub(crate) until_missed: bool,
    /// The number from which the identities of its participants were made; a run of the same
    /// scenario makes others. `None` in runs of earlier versions, which all had the same.
    #[serde(default)]
    seed: Option<u64>,
    /// Where the secret of the consent proof comes from, if it was not given itself.
    pub(crate) consent_secret: Option<String>,
    pub(crate) budget: Option<String>,
    pub(crate) start: Option<u32>,
    pub(crate) ceiling: Option<u32>,
    pub(crate) vary: Option<String>,
    /// The search that it continued.
    pub(crate) resumed: Option<PathBuf>,
    /// Paths of secrets of the scenario that were given and are not kept.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
    #[serde(default)]
    pub(crate) media: Vec<MediaHash>,
    /// `scenario.toml`.
    #[serde(skip)]
    pub(crate) scenario: String,
}

impl KeptCommand {
    /// By `throng run FILE`.
    pub(crate) fn run(command: &Run) -> Self {
        Self {
            scenario_name: command.file.as_deref().map_or_else(String::new, name_of),
            ..Self::common("run", &command.common)
        }
    }

    /// By `throng view URL`.
    pub(crate) fn view(common: &Common) -> Self {
        Self::common("view", common)
    }

    /// By `throng find`.
    pub(crate) fn find(command: &Find) -> Self {
        let is_url = command.scenario.contains("://");
        Self {
            scenario_name: if is_url {
                String::new()
            } else {
                name_of(Path::new(&command.scenario))
            },
            budget: command.budget.clone(),
            start: command.start,
            ceiling: command.ceiling,
            vary: command.vary.clone(),
            resumed: command.resume.clone(),
            ..Self::common("find", &command.common)
        }
    }

    /// Whether no other user can have written what is run when the run of a folder is done again:
    /// its scenario starts commands, and names files whose words it sends.
    pub(crate) fn check_is_own(folder: &Path) -> Result<(), CliError> {
        let others = [SCENARIO, FILE].map(|name| folder.join(name)).into_iter();
        let others = others.filter(|path| path.exists());
        // It is there in each folder of a run: where others can write, they could put all of them.
        check_own(folder, std::iter::once(folder.join(DATABASE)).chain(others))
    }

    /// The same again.
    pub(crate) fn again(self) -> Self {
        Self { working_folder: std::env::current_dir().ok(), resumed: None, ..self }
    }

    fn common(command: &str, common: &Common) -> Self {
        let is_reference =
            |text: &&String| !matches!(TokenSource::parse(text.as_str()), TokenSource::Inline(_));
        let is_given = common.consent_secret.is_some();
        let consent_secret = common.consent_secret.as_ref().filter(is_reference).cloned();
        Self {
            format: FORMAT,
            command: command.to_owned(),
            working_folder: std::env::current_dir().ok(),
            threads: common.threads,
            receive: common.receive,
            tls_ca: common.tls_ca.clone(),
            packs: common.packs.clone(),
            until_missed: common.until_missed,
            seed: Some(common.seed.unwrap_or_else(run_id::seed)),
            secrets: if is_given && consent_secret.is_none() {
                vec![CONSENT.to_owned()]
            } else {
                Vec::new()
            },
            consent_secret,
            ..Self::default()
        }
    }

    /// With the scenario, its secrets and its media files.
    pub(crate) fn of(mut self, scenario: &Scenario, plan: &Plan) -> Self {
        self.scenario = scenario.to_toml();
        if self.scenario_name.is_empty() {
            self.scenario_name = scenario.target.display();
        }
        self.secrets.retain(|secret| secret == CONSENT);
        self.secrets.extend(redacted(&self.scenario));
        self.secrets.extend(left_out(scenario));
        let mut paths: Vec<PathBuf> = media::files(plan).map(PathBuf::from).collect();
        paths.sort();
        paths.dedup();
        self.media =
            paths.into_iter().map(|path| MediaHash { sha256: sha256(&path).ok(), path }).collect();
        self
    }

    /// Keeps it in the run folder. A run goes on without it.
    pub(crate) fn keep(&self, folder: &Path) {
        let kept = RunFolder::open(folder).and_then(|folder| {
            folder.put(SCENARIO, &self.scenario)?;
            let json = serde_json::to_string_pretty(self).unwrap_or_default();
            folder.put(FILE, json)
        });
        if let Err(error) = kept {
            say(&format!("`throng rerun` cannot repeat this run: {error}"));
        }
    }

    /// That of a run folder; `None` if an earlier version made it. An error is a sentence.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, String> {
        let Some(asked) = summary_file::read::<Self>(folder, FILE)? else { return Ok(None) };
        if asked.format > FORMAT {
            return Err(format!(
                "{FILE}: format {}, this throng reads up to {FORMAT}",
                asked.format
            ));
        }
        Ok(Some(asked))
    }

    /// Of a run folder of an earlier version, with the scenario of `run.db`.
    pub(crate) fn of_database(scenario: &str) -> Self {
        let mut asked =
            Self { command: "run".into(), secrets: redacted(scenario), ..Self::default() };
        scenario.clone_into(&mut asked.scenario);
        asked
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn is_search(&self) -> bool {
        self.command == "find"
    }

    pub(crate) fn name(&self) -> String {
        self.scenario_name.clone()
    }
}

/// Whether a scenario's file is one that a run folder has kept.
pub(crate) fn is_kept(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == SCENARIO) && file.with_file_name(FILE).is_file()
}

/// The name of a scenario's file; of one that is kept in a run folder, the name that the run had.
fn name_of(file: &Path) -> String {
    let kept = file.parent().filter(|_| file.file_name().is_some_and(|name| name == SCENARIO));
    if let Some(Ok(Some(asked))) = kept.map(KeptCommand::read) {
        return asked.scenario_name;
    }
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The paths of values that are redacted in a scenario, as `--set` takes them.
fn redacted(scenario: &str) -> Vec<String> {
    Hidden::of_file(scenario).into_iter().map(|hidden| hidden.path).collect()
}

/// The paths of values of a scenario that are secrets, or may be some, and no references to them.
pub(crate) fn written_out(scenario: &Scenario) -> Vec<String> {
    let mut paths = redacted(&scenario.to_toml());
    paths.extend(left_out(scenario));
    paths
}

/// Secrets that a stored scenario leaves out: tokens of agents, the key to create rooms.
fn left_out(scenario: &Scenario) -> Vec<String> {
    let mut paths = Vec::new();
    for (index, watch) in scenario.watch.iter().enumerate() {
        let at = match (&watch.name, scenario.watch.len()) {
            (_, 1) => "watch".to_owned(),
            (Some(name), _) => format!("watch.{name}"),
            (None, _) => format!("watch.{index}"),
        };
        let token = watch.agent.as_ref().and_then(|agent| agent.token.as_ref());
        if matches!(token, Some(TokenSource::Inline(_))) {
            paths.push(format!("{at}.token"));
        }
    }
    let admin_key = scenario.room.as_ref().and_then(|room| room.admin_key.as_ref());
    if matches!(admin_key, Some(TokenSource::Inline(_))) {
        paths.push("room.admin_key".to_owned());
    }
    paths
}

/// SHA-256 of a file, hexadecimal. It is read in blocks: a film, or a program with its symbols, is
/// as large as the memory of a small machine.
pub(crate) fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let (mut context, mut bytes) = (digest::Context::new(&digest::SHA256), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut bytes)?;
        let Some(read) = bytes.get(..count).filter(|read| !read.is_empty()) else { break };
        context.update(read);
    }
    Ok(context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}
