//! `throng rerun`: does a run again from its folder alone, and says what differs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use throng_observation::{shell, untrusted};
use throng_scenario::{Override, Scenario, WatchTarget, masked_override};
use throng_store::RunFolder;

use crate::args::{Common, Find, Rerun};
use crate::console::{CliError, Exit, print, say};
use crate::kept::{
    CONSENT, FolderKind, Hidden, KeptCommand, OPTIONS, OptionsFile, SCENARIO, covers, file_sha256,
    read_json, run_folder,
};
use crate::{find, run, run_id, scenario};

/// Facts of the generator's host that a result depends on.
const HOST_FACTS: [&str; 4] = ["cpu_model", "cores", "memory_bytes", "kernel"];

pub(crate) fn rerun(command: &Rerun) -> Result<Exit, CliError> {
    let folder = run_folder(&command.run);
    let earlier = Earlier::read(&folder)?;
    let sets = scenario::parse_sets(&command.set)?;
    let missing = earlier.missing(command, &sets);
    if command.print {
        print(&format!("{}\n", earlier.command_line(command, &missing)));
    }
    for difference in earlier.differences() {
        say(&format!("differs: {difference}"));
    }
    if command.print {
        missing
            .iter()
            .for_each(|secret| say(&format!("not kept, because it is a secret: {secret}")));
        return Ok(Exit::Met);
    }
    if !missing.is_empty() {
        let flags: Vec<String> = missing.iter().map(|secret| earlier.again(secret)).collect();
        return Err(CliError::usage(format!(
            "secrets are not kept in a run folder; give them again: throng rerun {} {}",
            shell::path(&command.run),
            flags.join(" ")
        )));
    }
    earlier.start(command)
}

/// A run that was made.
struct Earlier {
    folder: PathBuf,
    asked: KeptCommand,
    version: String,
    host: std::collections::BTreeMap<String, String>,
    /// The scenario is kept as a file.
    has_file: bool,
}

impl Earlier {
    fn read(folder: &Path) -> Result<Self, CliError> {
        if FolderKind::of(folder) == Some(FolderKind::Matrix) {
            let options = read_json::<OptionsFile>(folder, OPTIONS);
            let options = options.map_err(CliError::usage)?.unwrap_or_default();
            let (kind, command) = options.kind();
            return Err(CliError::usage(format!(
                "{} is a {kind}: throng {command} {}",
                folder.display(),
                shell::path(&options.file)
            )));
        }
        let run = RunFolder::outline(folder).map_err(CliError::usage)?;
        KeptCommand::check_is_own(folder)?;
        let file = folder.join(SCENARIO);
        let (asked, has_file) = match KeptCommand::read(folder).map_err(CliError::usage)? {
            Some(mut asked) => {
                asked.scenario = throng_folder::read_text(&file)
                    .map_err(|error| CliError::usage(format!("{}: {error}", file.display())))?;
                (asked, true)
            }
            // How a search was asked is not in its database, which has the crowd at its largest.
            None if !run.holds.is_empty() => {
                return Err(CliError::usage(format!(
                    "{}: this search was made by throng {}, which did not keep how it was asked",
                    folder.display(),
                    run.info.throng_version
                )));
            }
            None => (KeptCommand::of_database(&run.info.scenario), false),
        };
        let (version, host) = (run.info.throng_version, run.info.generator_host);
        Ok(Self { folder: folder.to_owned(), asked, version, host, has_file })
    }

    /// Secrets that were given then and are not given again.
    fn missing(&self, command: &Rerun, sets: &[Override]) -> Vec<String> {
        let is_given = |secret: &str| match secret {
            CONSENT => command.consent_secret.is_some(),
            path => sets.iter().any(|set| covers(&set.path, path)),
        };
        self.asked.secrets.iter().filter(|secret| !is_given(secret)).cloned().collect()
    }

    /// The flag that gives a secret again. Of a list, and of a URL, it has what is kept of it: only
    /// a part is secret, and the rest has to be given with it.
    fn again(&self, secret: &str) -> String {
        if secret == CONSENT {
            return format!("{CONSENT} SECRET");
        }
        let kept = Hidden::of_file(&self.asked.scenario);
        let kept = kept.iter().find(|hidden| hidden.path == secret);
        // A token that is left out of the scenario is secret as a whole.
        kept.map_or_else(|| shell::flag("--set", format!("{secret}=SECRET")), Hidden::flag)
    }

    /// What is not as it was, in sentences.
    fn differences(&self) -> Vec<String> {
        let mut all = Vec::new();
        let version = env!("CARGO_PKG_VERSION");
        if self.version != version {
            let made_by = untrusted::name(&self.version);
            all.push(format!("it was made by throng {made_by}, and this is throng {version}"));
        }
        let host = throng_engine::host::fingerprint();
        for fact in HOST_FACTS {
            if let (Some(was), Some(is)) = (self.host.get(fact), host.get(fact))
                && was != is
            {
                all.push(format!(
                    "the generator's {fact} was {}, and is {is} today",
                    untrusted::name(was)
                ));
            }
        }
        let base = self.asked.working_folder.clone().unwrap_or_default();
        if self.asked.working_folder.is_some() && !base.is_dir() {
            all.push(format!("the folder in which it was started is gone: {}", base.display()));
        }
        for media in &self.asked.media {
            let path = base.join(&media.path);
            match (file_sha256(&path), &media.sha256) {
                (Ok(is), Some(was)) if is == *was => {}
                (Ok(_), Some(_)) => {
                    all.push(format!("the media file {} has changed", path.display()));
                }
                (Ok(_), None) => {}
                (Err(error), _) => all.push(format!("the media file {}: {error}", path.display())),
            }
        }
        if let Ok(scenario) = Scenario::parse_stored(&self.asked.scenario) {
            for watch in &scenario.watch {
                if let WatchTarget::Pid(_) | WatchTarget::Cgroup(_) = &watch.target {
                    all.push(format!(
                        "it watches {}, which may be another process today",
                        watch.target
                    ));
                }
            }
        }
        if let Some(resumed) = &self.asked.resumed {
            all.push(format!(
                "it continued the search of {}; this one starts from the beginning",
                resumed.display()
            ));
        }
        all
    }

    /// The command, for a shell.
    fn command_line(&self, command: &Rerun, missing: &[String]) -> String {
        let here = std::env::current_dir().ok();
        let elsewhere =
            self.asked.working_folder.as_ref().filter(|folder| here.as_ref() != Some(folder));
        let file = self.folder.join(SCENARIO);
        let file =
            if elsewhere.is_some() { std::path::absolute(&file).unwrap_or(file) } else { file };
        let file = if self.has_file { shell::path(&file) } else { "SCENARIO".into() };
        let verb = if self.asked.is_search() { "find" } else { "run" };
        let mut words = vec!["throng".to_owned(), verb.to_owned(), file];
        let mut flag = |name: &str, value: Option<OsString>| {
            words.extend(value.map(|value| shell::flag(name, value)));
        };
        let asked = &self.asked;
        flag("--budget", asked.budget.clone().map(Into::into));
        flag("--start", asked.start.map(|start| start.to_string().into()));
        flag("--ceiling", asked.ceiling.map(|ceiling| ceiling.to_string().into()));
        flag("--vary", asked.vary.clone().map(Into::into));
        flag("--threads", asked.threads.map(|threads| threads.to_string().into()));
        flag("--receive", asked.receive.flag().map(Into::into));
        flag("--tls-ca", asked.tls_ca.clone().map(Into::into));
        flag("--packs", asked.packs.clone().map(Into::into));
        flag(CONSENT, asked.consent_secret.clone().map(Into::into));
        for set in &command.set {
            let masked = masked_override(set);
            let hidden = Hidden::of_set(&masked).map(|hidden| hidden.flag());
            words.push(hidden.unwrap_or_else(|| shell::flag("--set", masked)));
        }
        if asked.until_missed {
            words.push("--until-missed".into());
        }
        let mut line = words.join(" ");
        for secret in missing {
            line += &format!(" {}", self.again(secret));
        }
        elsewhere
            .map_or_else(|| line.clone(), |folder| format!("cd {} && {line}", shell::path(folder)))
    }

    fn start(self, command: &Rerun) -> Result<Exit, CliError> {
        let mut outputs = command.outputs.clone();
        outputs.output.get_or_insert_with(run_id::default_folder);
        let outputs = outputs.anywhere();
        let file = self.folder.join(SCENARIO);
        let file = std::path::absolute(&file).unwrap_or(file);
        if let Some(folder) = self.asked.working_folder.as_ref().filter(|folder| folder.is_dir()) {
            std::env::set_current_dir(folder)
                .map_err(|error| CliError::usage(format!("{}: {error}", folder.display())))?;
        }
        let asked = &self.asked;
        let common = Common {
            outputs,
            set: command.set.clone(),
            threads: asked.threads,
            receive: asked.receive,
            tls_ca: asked.tls_ca.clone(),
            packs: asked.packs.clone(),
            until_missed: asked.until_missed,
            consent_secret: command.consent_secret.clone().or_else(|| asked.consent_secret.clone()),
            ..Common::default()
        };
        if asked.is_search() {
            return find::find(&Find {
                scenario: shown(&file),
                budget: asked.budget.clone(),
                start: asked.start,
                ceiling: asked.ceiling,
                vary: asked.vary.clone(),
                resume: None,
                common,
            });
        }
        let scenario = scenario::of_text(&self.asked.scenario, &common, &shown(&file))?;
        run::run(&scenario, &common, self.asked.again())
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
#[path = "rerun_tests.rs"]
mod tests;
