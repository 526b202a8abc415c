//! The process that plays the crowd of a cell: its words, with secrets where nobody sees them.

use std::path::Path;

use throng_observation::shell;
use throng_rig::{RunningServer, Undo};
use throng_scenario::matrix::{Measure, Server};
use throng_scenario::{TokenSource, masked_override, masked_text};

use super::super::child::{self, CrowdEnd};
use super::super::plan::NOT_WATCHED;
use super::super::shown;
use super::server::{log_of, watch};
use super::{CellRunner, NoRun, SERVER, command};
use crate::fleet::FleetWorkers;

/// What the names of variables begin with that hold an override with a secret, and a watch with
/// one: of an agent or an endpoint.
const SET_VARIABLE: &str = "THRONG_SET_";
const WATCH_VARIABLE: &str = "THRONG_WATCH_";

/// The variable that holds the secret of the consent proof.
const CONSENT_VARIABLE: &str = "THRONG_CONSENT";

impl CellRunner<'_> {
    /// The arguments of the crowd's process.
    pub(super) fn arguments(
        &self,
        sets: &[String],
        server: Option<&RunningServer>,
        config: &Server<String>,
        folder: &Path,
    ) -> Vec<String> {
        let mut words = command(self.plan, self.between);
        let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), value.to_owned()]);
        sets.iter().for_each(|set| flag("--set", set));
        self.plan.options.allow_target.iter().for_each(|cidr| flag("--allow-target", cidr));
        if let Some(threads) = self.plan.options.threads {
            flag("--threads", &threads.to_string());
        }
        if let Some(server) = server.filter(|_| config.watch.as_deref() != Some(NOT_WATCHED)) {
            flag("--watch", &watch(server, &log_of(&folder.join(SERVER)), config.watch.as_deref()));
        }
        flag("--output", &shown(folder));
        words.push("--quiet".to_owned());
        words
    }

    pub(super) fn crowd(
        &mut self,
        arguments: &[String],
        folder: &Path,
        mark: &str,
        server: &mut Option<RunningServer>,
    ) -> Result<CrowdEnd, NoRun> {
        self.journal.before(Undo::Processes(mark.to_owned())).map_err(NoRun::failed)?;
        let (mut arguments, mut variables) = apart(arguments);
        if let Some(secret) = self.consent_secret {
            let named = match TokenSource::parse(secret) {
                TokenSource::Inline(secret) => {
                    variables.push((CONSENT_VARIABLE.to_owned(), secret.expose().to_owned()));
                    format!("env:{CONSENT_VARIABLE}")
                }
                reference @ (TokenSource::Environment(_) | TokenSource::File(_)) => {
                    reference.to_string()
                }
            };
            arguments.extend(["--consent-secret".to_owned(), named]);
        }
        arguments.extend(self.crew.iter().flat_map(|crew| crew.flags().iter().cloned()));
        let bus = self.crew.as_ref().and_then(FleetWorkers::variable);
        variables.extend(bus.map(|(name, url)| (name.to_owned(), url)));
        let child = child::start(&arguments, &folder.join("run.log"), mark, variables)
            .map_err(|error| NoRun::failed(format!("throng cannot be started: {error}")))?;
        // A search on a server that has ended would go on for a long time; users of a hold count
        // what they did not get.
        let ends_with_server = !matches!(self.plan.matrix.measure, Measure::Hold(_));
        Ok(child::wait(child, server, self.interrupt, ends_with_server))
    }
}

/// The words of a crowd's command line as all users of this machine may see them, and the variables
/// that hold the overrides and watches with secrets.
fn apart(arguments: &[String]) -> (Vec<String>, Vec<(String, String)>) {
    let (mut words, mut variables) = (Vec::new(), Vec::new());
    for (index, word) in arguments.iter().enumerate() {
        let begins = match flag_before(arguments, index) {
            Some("--set") if masked_override(word) != *word => SET_VARIABLE,
            Some("--watch") if masked_text(word) != *word => WATCH_VARIABLE,
            _ => {
                words.push(word.clone());
                continue;
            }
        };
        let name = format!("{begins}{}", variables.len());
        words.push(format!("env:{name}"));
        variables.push((name, word.clone()));
    }
    (words, variables)
}

/// The word before this one: the flag whose value it is, if it is one.
fn flag_before(arguments: &[String], index: usize) -> Option<&str> {
    arguments.get(index.checked_sub(1)?).map(String::as_str)
}

/// The command line without secrets, and without what only this matrix needs.
pub(crate) fn by_hand(arguments: &[String]) -> String {
    let mut words = vec!["throng"];
    let shown = |(index, word): (usize, &String)| {
        let is_override = flag_before(arguments, index) == Some("--set");
        if is_override { masked_override(word) } else { masked_text(word) }
    };
    let shown: Vec<String> = arguments.iter().enumerate().map(shown).collect();
    let mut rest = shown.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--output" | "--watch" => drop(rest.next()),
            "--quiet" => {}
            word => words.push(word),
        }
    }
    shell::line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_can_be_repeated_by_hand() {
        let words = [
            "run",
            "a.toml",
            "--set",
            "crowd.arrival={ every = \"1s\" }",
            "--watch",
            "pid=1",
            "--output",
            "x",
            "--quiet",
        ];
        let line = by_hand(&words.map(str::to_owned));
        assert_eq!(line, "throng run a.toml --set 'crowd.arrival={ every = \"1s\" }'");
        let line = by_hand(&["run", "$(id).toml", "--set", "a=x;y"].map(str::to_owned));
        assert_eq!(line, "throng run '$(id).toml' --set 'a=x;y'");
    }

    #[test]
    fn a_secret_is_in_the_environment_of_a_crowd_and_not_in_its_arguments() {
        let words = [
            "run",
            "a.toml",
            "--set",
            "target.token=\"S3CRET\"",
            "--set",
            "crowd.size=5",
            "--set",
            "target.url=ws://a:S3CRET@h/x",
            "--set",
            "target.api_secret=env:LIVEKIT",
            "--watch",
            "agent=tcp://127.0.0.1:1,token=S3CRET",
            "--watch",
            "port=1,metrics=http://me:S3CRET@h/m",
            "--watch",
            "port=1,pack=janus",
        ]
        .map(str::to_owned);
        let (seen, variables) = apart(&words);
        assert_eq!(
            seen.join(" "),
            "run a.toml --set env:THRONG_SET_0 --set crowd.size=5 --set env:THRONG_SET_1 --set \
             target.api_secret=env:LIVEKIT --watch env:THRONG_WATCH_2 --watch env:THRONG_WATCH_3 \
             --watch port=1,pack=janus"
        );
        let held = [
            ("THRONG_SET_0", &words[3]),
            ("THRONG_SET_1", &words[7]),
            ("THRONG_WATCH_2", &words[11]),
            ("THRONG_WATCH_3", &words[13]),
        ];
        assert_eq!(variables, held.map(|(name, set)| (name.to_owned(), set.clone())));
        assert_eq!(
            by_hand(&words),
            "throng run a.toml --set 'target.token=…' --set crowd.size=5 --set \
             'target.url=ws://…@h/x' --set target.api_secret=env:LIVEKIT"
        );
    }
}
