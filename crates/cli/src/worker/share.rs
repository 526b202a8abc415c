//! A worker's share of a plan, and what a plan from elsewhere may use of this machine.

use std::path::{Component, Path};

use throng_fleet::Assignment;
use throng_fleet::message::{ClockSaid, Ready};
use throng_fleet::shares::Shares;
use throng_observation::shell;
use throng_scenario::{Network, Override, Plan, Scenario};

use crate::args;
use crate::console::CliError;
use crate::fleet::build;
use crate::fleet::feed::{self, Feed};
use crate::media;
use crate::secrets::references;
use crate::session::{self, Prepared};

/// A worker's share of a plan.
pub(super) struct Share {
    pub(super) scenario: Scenario,
    /// The whole plan, which this worker's owner lets no further than its own networks.
    pub(super) whole: Plan,
    pub(super) part: Plan,
    plan_sha256: String,
    users_max: Option<u32>,
    pub(super) added_participants_max: Option<u32>,
    /// Where it may get participants of other workers.
    pub(super) feed: Option<Feed>,
}

impl Share {
    pub(super) fn ready(&self, prepared: &Prepared<'_>) -> Ready {
        Ready {
            plan_sha256: self.plan_sha256.clone(),
            media_files: media::hashes(&self.whole),
            participants: u32::try_from(self.part.joins.len()).unwrap_or(u32::MAX),
            host: throng_engine::host::fingerprint(),
            warnings: prepared.with_left_out(session::warnings(&self.part, &prepared.pages)),
            mbit_per_s_max: prepared.permission.mbit_per_s_max(),
            clock: ClockSaid::default(), // known when it is said
        }
    }

    /// Participants at a time that a search may have here: what this worker's guard has judged.
    pub(super) fn users_max(&self) -> usize {
        let judged = self.whole.expected.users;
        self.users_max.map_or(judged, |most| most.min(judged)) as usize
    }

    /// Its share of the load, 0 to 1.
    pub(super) fn load_ratio(&self) -> f64 {
        let (own, all) = (self.part.joins.len() as f64, self.whole.joins.len() as f64);
        if all > 0.0 { own / all } else { 1.0 }
    }
}

/// Makes the plan of an order, and takes this worker's share of it.
pub(super) fn read(
    assignment: &Assignment,
    allowed: &[Network],
    command: &args::Worker,
) -> Result<Share, CliError> {
    let order = &assignment.order;
    let origin = |path: &str| format!("the coordinator's {path}");
    let overrides: Vec<Override> = order
        .overrides
        .iter()
        .map(|(path, value, is_text)| Override {
            path: path.clone(),
            value: value.clone(),
            origin: origin(path),
            is_text: *is_text,
        })
        .collect();
    let scenario = Scenario::parse_with(&order.scenario, &overrides).map_err(CliError::usage)?;
    let is_search = order.added_participants_max.is_some();
    let scenario = if is_search { scenario.without_jitter() } else { scenario };
    let mut whole = scenario.plan();
    let plan_sha256 = build::plan_sha256(&scenario, &whole);
    // Whom this machine may load is its owner's decision, not that of a plan.
    whole.target.allow = allowed.to_vec();
    guard(&scenario, &whole, &command.allow_secret)?;
    let shares = Shares::of(&order.weights).map_err(CliError::usage)?;
    let part = whole.part(|number| shares.worker_of(number) == order.worker);
    if let Some(most) = command.max_users.filter(|most| part.expected.users > *most) {
        return Err(CliError::target(format!(
            "its share has {} participants at a time, and this worker plays at most {most}",
            part.expected.users
        )));
    }
    // The coordinator has the browsers, and watches hosts.
    (whole.canary, whole.watch) = (None, Vec::new());
    let (users_max, added_participants_max) = (command.max_users, order.added_participants_max);
    let mut share =
        Share { scenario, whole, part, plan_sha256, users_max, added_participants_max, feed: None };
    share.feed = order.reassigns.then(|| {
        let deal = feed::deal(&share.whole, &order.weights, &shares);
        Feed::new(deal, order.worker, share.users_max())
    });
    Ok(share)
}

/// What a plan from elsewhere may use of this machine: files below the folder in which the worker
/// was started, and the secrets that its owner allowed. Otherwise a plan could have any file or
/// variable sent to a target.
fn guard(scenario: &Scenario, plan: &Plan, allowed: &[String]) -> Result<(), CliError> {
    let named = references(&scenario.to_toml()).map_err(CliError::target)?;
    if let Some(reference) = named.iter().find(|text| !allowed.contains(text)) {
        return Err(CliError::target(format!(
            "the plan uses {reference} of this machine; its owner may allow that with {}",
            shell::flag("--allow-secret", reference)
        )));
    }
    let is_below = |path: &&String| {
        Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    match media::files(plan).find(|path| !is_below(path)) {
        Some(path) => Err(CliError::target(format!(
            "the plan sends {path}, which is not below the folder in which this worker was started"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a worker that allows one secret says of a plan.
    fn judged(token: &str, more: &str) -> Result<(), String> {
        let url = "whip+http://127.0.0.1:7080/whip";
        let token = toml::Value::from(token);
        let text = format!(
            "[target]\nurl = \"{url}\"\ntoken = {token}\n[crowd]\nsize = 1\n\
             subscribe = \"none\"\n{more}"
        );
        let scenario = Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let allowed = ["env:ALLOWED \"one\"".to_owned()];
        guard(&scenario, &scenario.plan(), &allowed).map_err(|stop| stop.error.to_string())
    }

    #[test]
    fn a_plan_from_elsewhere_gets_the_secrets_that_are_allowed_and_no_others() {
        let publish = "publish = { video = \"144p\" }\n";
        for token in ["inline", "env:ALLOWED \"one\""] {
            assert_eq!(judged(token, publish), Ok(()), "{token}");
        }
        for (token, flag) in [
            ("env:HOME", "--allow-secret env:HOME"),
            (r"env:A\B", r"--allow-secret 'env:A\B'"),
            ("env:A\"B", "--allow-secret 'env:A\"B'"),
            ("env:A\nB", r"--allow-secret $'env:A\012B'"),
            ("file:/etc/passwd", "--allow-secret file:/etc/passwd"),
            ("file:/a; touch b", "--allow-secret 'file:/a; touch b'"),
            ("file:/it's \"it\"", r#"--allow-secret 'file:/it'\''s "it"'"#),
        ] {
            let said = judged(token, publish).unwrap_err();
            assert!(said.starts_with("the plan uses ") && said.ends_with(flag), "{token}: {said}");
        }
    }

    #[test]
    fn a_plan_from_elsewhere_gets_files_below_the_folder_of_the_worker_and_no_others() {
        for (file, is_below) in [
            ("a.h264", true),
            ("./media/a.h264", true),
            ("/etc/a.h264", false),
            ("../a.h264", false),
            ("media/../../a.h264", false),
        ] {
            let said = judged("inline", &format!("publish = {{ video = \"{file}\" }}\n"));
            let is_refused =
                said.as_ref().is_err_and(|why| why.contains("is not below the folder"));
            assert_eq!((said.is_ok(), is_refused), (is_below, !is_below), "{file}: {said:?}");
        }
    }
}
