//! Laws that hold for every text of a user or a server: one function per parser, shared by the
//! brief fuzz of `cargo test` and by the fuzz targets. Each panics when its law is broken.

#![allow(dead_code, unused_imports, reason = "a fuzz target uses one of the laws")]

use std::time::Duration;

use throng_observation::untrusted::is_harmful;
use throng_scenario::har::{self, PageOrigins, PagePlan, PageRequest, PlayerStart};
use throng_scenario::matrix::{Matrix, Places};
use throng_scenario::prices::{ComputePrices, PriceTable};
use throng_scenario::{
    ConsentProof, ConsentProofError, ConsentSecret, Objective, Origin, OriginRule, Override,
    Scenario, Target,
};

/// Above this number of users no plan is made, so that a law is quick.
const USERS_PLANNED_MAX: u64 = 10_000;

/// Matrix files: of one that is read, every cell and the order of the runs can be made.
pub(crate) fn matrix(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Matrix::parse(&text) {
        Ok(matrix) => {
            let (cells, places) =
                (matrix.cells(), Places { dir: "/dir".into(), base: "/base".into() });
            assert!(!cells.is_empty() && cells.len() <= Matrix::CELLS_MAX);
            assert_eq!(matrix.runs().len(), cells.len() * matrix.repeats as usize);
            for cell in cells.iter().take(64) {
                let config = matrix.cell(cell, &places);
                assert!(config.server.command.iter().all(|words| !words.is_empty()));
            }
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty() && error.to_string().starts_with("error: "));
        }
    }
}

/// Files of proofs, also with `--shrink`: of one that is read, the pairs of every variant can be
/// made.
pub(crate) fn proof(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for shrink in [None, Some("cpu=0.7"), Some(text.get(..8).unwrap_or("cpu"))] {
        match Matrix::parse_proof(&text, shrink) {
            Ok(proof) => {
                let (cells, places) =
                    (proof.cells(), Places { dir: "/dir".into(), base: "/base".into() });
                let pairs = proof.pairs.expect("a proof has pairs") as usize;
                assert!(cells.len() >= 2 && pairs >= 2);
                assert_eq!(proof.runs().len(), (cells.len() - 1) * pairs * 2);
                for (index, cell) in cells.iter().enumerate() {
                    let runs = proof.runs().iter().filter(|run| run.cell == index).count();
                    assert_eq!(runs, proof.repeats_of(index) as usize);
                    let config = proof.cell(cell, &places);
                    assert!(config.shrink.iter().all(|shrink| shrink.to > 0.0 && shrink.to <= 1.0));
                }
            }
            Err(error) => {
                assert!(!error.diagnostics.is_empty() && error.to_string().starts_with("error: "));
            }
        }
    }
}

/// Price files: what is read has no negative price, and more traffic never costs less.
pub(crate) fn prices(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match PriceTable::parse(&text) {
        Ok(table) => {
            let mut before = 0.0;
            for gb in [0.0, 0.5, 100.0, 1e4, 1e6, 1e12] {
                let price = table.egress.price_of(gb);
                assert!(price.is_finite() && price >= before, "{gb} GB: {price}");
                before = price;
            }
            if let ComputePrices::Machines(machines) = &table.compute {
                assert!(!machines.is_empty() && machines.iter().all(|machine| machine.vcpus > 0.0));
                assert!(machines.iter().all(|machine| machine.per_hour >= 0.0));
            }
        }
        Err(error) => {
            assert!(!error.diagnostics.is_empty() && error.to_string().starts_with("error: "));
        }
    }
}

/// Scenario files; lines `--set PATH=VALUE` before anything else are overrides.
pub(crate) fn scenario(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut overrides = Vec::new();
    let mut file: &str = &text;
    while let Some((line, rest)) =
        file.strip_prefix("--set ").map(|rest| rest.split_once('\n').unwrap_or((rest, "")))
    {
        match Override::parse(line) {
            Ok(over) => overrides.push(over),
            Err(error) => assert!(error.to_string().contains("--set")),
        }
        file = rest;
    }
    match Scenario::parse_with(file, &overrides) {
        Ok(scenario) => scenario_again(&scenario),
        Err(error) => {
            assert!(!error.diagnostics.is_empty());
            for diagnostic in &error.diagnostics {
                assert!(!diagnostic.message.is_empty());
                let Some(location) = &diagnostic.location else { continue };
                assert!(location.width >= 1 && location.column >= 1);
                match &location.origin {
                    Origin::File => {
                        assert!((1..=file.lines().count().max(1) + 1).contains(&location.line));
                    }
                    Origin::Override(words) => assert!(words.starts_with("--set ")),
                }
            }
            assert!(error.to_string().starts_with("error: "));
        }
    }
}

fn scenario_again(scenario: &Scenario) {
    let written = scenario.to_toml();
    // Secrets are not stored, so a scenario with one does not read back.
    if !written.contains('…') {
        let again = Scenario::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        assert_eq!(again, *scenario);
    }
    if scenario.users() <= USERS_PLANNED_MAX && scenario.run.duration <= Duration::from_secs(3_600)
    {
        let plan = scenario.plan();
        assert!(plan.joins.len() as u64 >= scenario.users());
        assert!(plan.joins.is_sorted_by_key(|join| join.at));
    }
}

/// Recordings of pages: every request of one that is read goes to an origin that was named, begins
/// after one that began before it, once, and soon; nothing that decides the framing of messages is
/// repeated.
pub(crate) fn har(bytes: &[u8]) {
    let target = Target::parse("http://127.0.0.1:8080/live.m3u8").expect("a URL");
    let rule =
        OriginRule { recorded: "https://cdn.example".into(), requested: "http://127.0.0.2".into() };
    let day = Duration::from_secs(86_400);
    match PagePlan::read(bytes, &PageOrigins::new(target.url(), &[rule]), Duration::from_secs(60)) {
        Ok(plan) => {
            assert!((1..=har::ENTRIES_MAX).contains(&plan.requests.len()));
            let mut followers = vec![0; plan.requests.len()];
            for (index, request) in plan.requests.iter().enumerate() {
                let origin = request.url.origin().ascii_serialization();
                assert!(
                    ["http://127.0.0.1:8080", "http://127.0.0.2"].contains(&origin.as_str()),
                    "{origin}"
                );
                assert!(request.begins.request.is_none_or(|before| before < index));
                assert!(request.begins.delay <= day);
                for follower in &request.followers {
                    assert_eq!(plan.requests[*follower].begins.request, Some(index));
                    followers[*follower] += 1;
                }
                let sent = request.headers.iter().map(|(name, _)| name.as_str());
                assert!(
                    sent.into_iter()
                        .all(|name| !["host", "cookie", "content-length"].contains(&name))
                );
                let values = request.headers.iter().map(|(_, value)| value);
                assert!(values.into_iter().all(|value| !value.contains(['\r', '\n', '\0'])));
            }
            let follows = |request: &PageRequest| usize::from(request.begins.request.is_some());
            assert!(
                plan.requests
                    .iter()
                    .zip(&followers)
                    .all(|(request, count)| follows(request) == *count)
            );
            match &plan.player {
                PlayerStart::At(after) => {
                    assert!(
                        after.request.is_none_or(|at| at < plan.requests.len())
                            && after.delay <= day
                    );
                }
                PlayerStart::Loaded(all) => {
                    assert!(
                        all.is_sorted()
                            && all.last().is_none_or(|last| *last < plan.requests.len())
                    );
                }
            }
            assert!(plan.left_out.sentence().is_none_or(|sentence| !sentence.contains(is_harmful)));
        }
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty() && said.len() < 1_000, "{said}");
            assert!(!said.contains(is_harmful), "{said:?}");
        }
    }
}

/// Objectives: what is read is written in a form that reads the same, and an error points into the
/// text.
pub(crate) fn objective(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match text.parse::<Objective>() {
        Ok(objective) => {
            let again: Objective = objective.to_string().parse().expect("its own text");
            assert_eq!(again, objective);
            assert!(objective.threshold.value().is_finite());
        }
        Err(error) => {
            assert!(!error.message.is_empty() && !error.help.is_empty());
            assert!(text.get(error.span.clone()).is_some(), "{:?} is not in {text:?}", error.span);
        }
    }
}

/// Target URLs: the displayed URL is a target of the same protocol and host, and contains no
/// secret.
pub(crate) fn target(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Target::parse(&text) {
        Ok(target) => {
            let (host, port) = target.host_and_port();
            assert!(
                !host.is_empty()
                    && matches!(target.url().scheme(), "ws" | "wss" | "http" | "https")
            );
            let shown = target.display();
            let again = Target::parse(&shown)
                .unwrap_or_else(|error| panic!("{text:?} shown as {shown}: {error}"));
            assert_eq!(
                (again.protocol(), again.host_and_port()),
                (target.protocol(), (host, port)),
                "{shown}"
            );
            assert_eq!(again.is_loopback(), target.is_loopback());
            let user =
                shown.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
            let user = user
                .and_then(|authority| authority.rsplit_once('@'))
                .map_or("…", |(user, _)| user);
            assert_eq!(user, "…", "{shown}");
            for (key, value) in again.url().in_clear().query_pairs() {
                let is_secret = ["token", "key", "secret", "pass", "sig", "auth", "policy"]
                    .iter()
                    .any(|word| key.to_ascii_lowercase().contains(word));
                let is_name = value.len() <= 64 && value.chars().all(|c| c.is_ascii_graphic());
                // A name in braces is replaced in the example that is read again.
                let is_filled_in = target.template.is_some() && value.contains('…');
                assert!(value == "…" || is_filled_in || (!is_secret && is_name), "{shown}");
            }
        }
        Err(error) => assert!(error.to_string().contains("write"), "{error}"),
    }
}

/// Consent proofs: an accepted one can be judged, and only lowers limits.
pub(crate) fn consent(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match ConsentProof::parse(&text) {
        Ok(proof) => {
            let lowered = throng_scenario::Caps::DEFAULT.lowered_by(&proof.caps);
            assert!(
                lowered.users <= throng_scenario::Caps::DEFAULT.users && lowered.users.is_some()
            );
            assert!(lowered.duration <= throng_scenario::Caps::DEFAULT.duration);
            assert!(
                proof.caps.users.is_some() && proof.caps.mbit_per_s.is_some(),
                "consent has limits"
            );
            // The secret of a found proof is unknown, so it is valid for no tester.
            let stranger = ConsentSecret::new([1; 32]);
            let used = proof.validate(
                &stranger,
                &proof.host,
                proof.port,
                proof.expires_unix_s.saturating_sub(1),
            );
            assert!(matches!(used, Err(ConsentProofError::OtherSecret { .. })), "{used:?}");
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("consent proof") && said.len() < 1_000, "{said}");
            assert!(!said.contains(is_harmful), "{said:?}");
        }
    }
}
