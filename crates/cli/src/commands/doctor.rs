//! `throng doctor`: what this machine allows, and what that means for a crowd.

use std::fmt::Write as _;

use serde_json::json;
use throng_observation::untrusted;
use throng_report::columns::columns;
use throng_scenario::{AddressRange, Plan, Scenario, ScenarioFlags};

use crate::args;
use crate::console::{CliError, Exit, print, print_json};
use crate::doctor::{Check, Facts, Verdict, checks};
use crate::session;

/// A viewer by WebRTC; nothing is sent there.
const VIEWER: &str = "whep+http://127.0.0.1/whep";

/// The viewers of the largest crowd.
const VIEWERS_MAX: u32 = 1_000_000;

pub(crate) fn doctor(command: &args::Doctor) -> Result<Exit, CliError> {
    let plan = plan(&command.source_ip)?;
    if let Some(problem) = session::foreign_source(&plan) {
        return Err(CliError::usage(problem));
    }
    let checks = checks(&Facts::read(session::needs(&plan)));
    let viewers = command.viewers.map(u64::from);
    let fit = viewers.map(|viewers| fit(&checks, viewers));
    if command.json {
        let report =
            json!({ "doctor_version": 1, "viewers": viewers, "fit": fit, "checks": checks });
        print_json(&format!("{report:#}\n"));
    } else {
        print(&text(&checks, viewers));
    }
    Ok(if fit == Some(false) { Exit::Invalid } else { Exit::Met })
}

/// The plan of a viewer at each of the source addresses, or of one viewer.
fn plan(source_ips: &[String]) -> Result<Plan, CliError> {
    // Of what is no range the scenario says why.
    let ranges = source_ips.iter().filter_map(|text| text.parse::<AddressRange>().ok());
    let addresses = ranges.fold(0_u128, |all, range| all.saturating_add(range.len()));
    let flags = ScenarioFlags {
        url: VIEWER.to_owned(),
        size: Some(u32::try_from(addresses).unwrap_or(VIEWERS_MAX).clamp(1, VIEWERS_MAX)),
        every: Some("0s".to_owned()),
        duration: Some("1s".to_owned()),
        source_ips: source_ips.to_vec(),
        ..ScenarioFlags::default()
    };
    Ok(Scenario::from_flags(&flags).map_err(CliError::usage)?.plan())
}

/// Whether no check limits the crowd to fewer.
fn fit(checks: &[Check], viewers: u64) -> bool {
    least(checks).is_none_or(|(most, _)| viewers <= most)
}

/// The viewers that the tightest check allows, and its name.
fn least(checks: &[Check]) -> Option<(u64, &str)> {
    checks.iter().filter_map(|check| Some((check.verdict.viewers_max()?, check.name))).min()
}

fn text(checks: &[Check], viewers: Option<u64>) -> String {
    let row = |check: &Check| {
        vec![check.name.to_owned(), judged(&check.verdict, viewers), check.found.clone()]
    };
    let rows: Vec<Vec<String>> = checks.iter().map(row).collect();
    let mut out = String::new();
    for (check, line) in checks.iter().zip(columns(&rows).lines()) {
        let _ = writeln!(out, "{line}");
        let is_short = viewers.is_some_and(|viewers| !fit(std::slice::from_ref(check), viewers));
        let means = match &check.verdict {
            Verdict::Lacks { means } => Some(means),
            Verdict::Limits { .. } | Verdict::Ok => None,
        };
        if let Some(means) = means {
            let _ = writeln!(out, "    {}", untrusted::line(means));
        }
        if means.is_some() || is_short {
            let _ = writeln!(out, "    change: {}", untrusted::line(&check.change));
        }
    }
    let _ = writeln!(
        out,
        "{}; `throng calibrate` measures how many the CPUs play",
        answer(checks, viewers)
    );
    out
}

fn judged(verdict: &Verdict, viewers: Option<u64>) -> String {
    match (verdict, viewers) {
        (Verdict::Ok, _) => "ok".to_owned(),
        (Verdict::Lacks { .. }, _) => "lacks".to_owned(),
        (Verdict::Limits { viewers: most }, None) => format!("about {most} viewers"),
        (Verdict::Limits { viewers: most }, Some(viewers)) if viewers <= *most => {
            format!("ok, about {most} viewers")
        }
        (Verdict::Limits { viewers: most }, Some(_)) => format!("LIMITS, about {most} viewers"),
    }
}

fn answer(checks: &[Check], viewers: Option<u64>) -> String {
    match (viewers, least(checks)) {
        (Some(viewers), Some((most, name))) if most < viewers => {
            format!("{viewers} viewers do not fit, {name} allows about {most}")
        }
        (Some(viewers), _) => format!("{viewers} viewers fit"),
        (None, Some((most, name))) => format!("about {most} viewers fit, {name} allows no more"),
        (None, None) => "no limit was found".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &'static str, verdict: Verdict) -> Check {
        Check { name, found: format!("{name} here"), verdict, change: format!("more {name}") }
    }

    fn found() -> Vec<Check> {
        vec![
            check("files", Verdict::Limits { viewers: 118 }),
            check("ports", Verdict::Limits { viewers: 28_232 }),
            check("ring", Verdict::Lacks { means: "sockets".to_owned() }),
            check("clock", Verdict::Ok),
        ]
    }

    #[test]
    fn a_crowd_fits_if_the_tightest_check_allows_it() {
        let all = found();
        assert!(fit(&all, 118) && !fit(&all, 119) && fit(&[], 1_000_000));
        for (viewers, expect) in [
            (None, "about 118 viewers fit, files allows no more; "),
            (Some(118), "118 viewers fit; "),
            (Some(500), "500 viewers do not fit, files allows about 118; "),
        ] {
            let said = text(&all, viewers);
            let last = said.lines().last().unwrap();
            assert!(last.starts_with(expect), "{said}");
        }
    }

    #[test]
    fn what_to_change_is_said_where_something_lacks_or_is_too_small() {
        let said = text(&found(), Some(500));
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines[..lines.len() - 1],
            [
                "files  LIMITS, about 118 viewers  files here",
                "    change: more files",
                "ports  ok, about 28232 viewers    ports here",
                "ring   lacks                      ring here",
                "    sockets",
                "    change: more ring",
                "clock  ok                         clock here",
            ]
        );
        assert!(!text(&found(), None).contains("more files"));
    }

    #[test]
    fn each_source_address_is_counted_once() {
        let addresses = |ranges: &[&str]| {
            let ranges: Vec<String> = ranges.iter().map(|range| (*range).to_owned()).collect();
            plan(&ranges).map(|plan| session::needs(&plan).source_ips)
        };
        let range = "127.0.0.2-127.0.0.4";
        assert_eq!(addresses(&[]).unwrap(), 1);
        assert_eq!(addresses(&[range]).unwrap(), 3);
        assert_eq!(addresses(&[range, "127.0.0.4", "127.0.0.9"]).unwrap(), 4);
        let stop = addresses(&[range, "eth0"]).unwrap_err();
        assert_eq!(stop.exit, Exit::Usage);
        assert!(stop.error.to_string().contains("--source-ip"), "{}", stop.error);
    }

    #[test]
    fn what_scripts_read_is_flat() {
        let said = json!({ "checks": found() });
        let checks = &said["checks"];
        assert_eq!((&checks[0]["verdict"], &checks[0]["viewers"]), (&json!("limits"), &json!(118)));
        assert_eq!(
            (&checks[2]["verdict"], &checks[2]["means"]),
            (&json!("lacks"), &json!("sockets"))
        );
        assert_eq!(checks[3]["verdict"], "ok");
    }
}
