//! Pages around players: recordings that are read once and shared by all viewers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use throng_observation::Url;
use throng_protocol::factory;
use throng_scenario::har::{FILE_BYTES_MAX, PageOrigins, PagePlan};
use throng_scenario::{OriginRule, Plan, RecordedPage};

use crate::console::CliError;

/// The recorded pages of a plan.
#[derive(Clone, Default)]
pub(crate) struct Pages {
    pub(crate) plans: factory::Pages,
    /// Why requests of some recorded origins go nowhere.
    refused: Vec<String>,
}

/// Whether a host, as in a URL, may get load; the error is a sentence.
pub(crate) type MayLoad<'a> = &'a dyn Fn(&Url) -> Result<(), String>;

impl Pages {
    /// Reads the recordings that the plan names. An error names the file, the problem, and the
    /// remedy.
    pub(crate) fn read(plan: &Plan) -> Result<Self, CliError> {
        Self::read_within(plan, &|_| Ok(()))
    }

    /// The same without requests to hosts that may get no load.
    pub(crate) fn within(self, plan: &Plan, may_load: MayLoad<'_>) -> Result<Self, CliError> {
        let rules = self.plans.keys().flat_map(|page| &page.origins);
        let are_allowed = rules.into_iter().all(|rule| refusal(rule, plan, may_load).is_none());
        if are_allowed { Ok(self) } else { Self::read_within(plan, may_load) }
    }

    fn read_within(plan: &Plan, may_load: MayLoad<'_>) -> Result<Self, CliError> {
        let (mut plans, mut refused) = (BTreeMap::new(), BTreeSet::new());
        for (cohort, role) in plan.cohorts.iter().zip(&plan.roles) {
            let Some(page) =
                role.player.recorded_page.as_ref().filter(|page| !plans.contains_key(*page))
            else {
                continue;
            };
            let (kept, others): (Vec<OriginRule>, Vec<OriginRule>) = page
                .origins
                .iter()
                .cloned()
                .partition(|rule| refusal(rule, plan, may_load).is_none());
            refused.extend(others.iter().filter_map(|rule| refusal(rule, plan, may_load)));
            let of_page = of_file(page, &PageOrigins::new(plan.target.url(), &kept));
            let of_page = of_page.map_err(|why| {
                CliError::usage(anyhow!(
                    "player.har of {cohort} cannot be used: {}: {why}",
                    page.har
                ))
            })?;
            plans.insert(page.clone(), Arc::new(of_page));
        }
        Ok(Self { plans: Arc::new(plans), refused: refused.into_iter().collect() })
    }

    /// What viewers do not request although it was recorded.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let left_out = self.plans.iter().filter_map(|(page, plan)| {
            let repeated = plan.requests.len();
            let left_out = plan.left_out.sentence()?;
            let help = if plan.left_out.origins.is_empty() {
                ""
            } else {
                "; name those that may get load in player.origins"
            };
            Some(format!(
                "{}: {repeated} requests are repeated; left out: {left_out}{help}",
                page.har
            ))
        });
        left_out.chain(self.refused.iter().cloned()).collect()
    }

    /// A line about each, for `throng check`.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        for (page, plan) in self.plans.iter() {
            let (cached, revalidated) = plan.warm_counts();
            let (all, warm) = (plan.requests.len(), f64::from(page.warm_milli) / 10.0);
            text += &format!(
                "page        {}: {all} requests; warm ({warm} % of viewers): {cached} from the \
                 cache, {revalidated} revalidated\n",
                page.har
            );
        }
        text
    }
}

/// Why requests go nowhere although a rule names where; `None` if they may. Those to the target are
/// judged with it.
fn refusal(rule: &OriginRule, plan: &Plan, may_load: MayLoad<'_>) -> Option<String> {
    let url = Url::parse(&rule.requested).ok()?;
    let place = |url: &Url| (url.host_str().map(str::to_owned), url.port_or_known_default());
    // Another port of its host is another service, which has to agree itself.
    let is_of_target = place(&url) == place(plan.target.url());
    let why = if is_of_target { None } else { may_load(&url).err() }?;
    Some(format!("player.origins: what was requested of {} is not sent: {why}", rule.recorded))
}

fn of_file(page: &RecordedPage, origins: &PageOrigins) -> Result<PagePlan, String> {
    let bytes = contents(Path::new(&page.har))?;
    PagePlan::read(&bytes, origins, page.warm_age).map_err(|error| error.to_string())
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| {
        format!("{error}; the path is relative to the folder of the scenario file")
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > FILE_BYTES_MAX {
        let mib = FILE_BYTES_MAX >> 20;
        return Err(format!("larger than {mib} MiB; save it without the contents of responses"));
    }
    std::fs::read(path).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use throng_scenario::Scenario;

    use super::*;

    #[test]
    fn what_may_get_no_load_is_left_out_and_named_and_a_broken_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let har = folder.path().join("a.har");
        let entry = |url: &str, mime_type: &str| {
            format!(
                r#"{{"startedDateTime":"2026-11-25T10:00:00Z","time":5,"request":{{"method":"GET","url":"{url}"}},
                "response":{{"status":200,"content":{{"mimeType":"{mime_type}"}}}}}}"#
            )
        };
        let entries = [
            entry("https://tube.example/", "text/html"),
            entry("https://cdn.example/a.png", "image/png"),
            entry("https://ads.example/a.js", "text/javascript"),
        ];
        std::fs::write(&har, format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(",")))
            .unwrap();
        let plan = |path: &Path| {
            let text = format!(
                "[target]\nurl = \"http://127.0.0.1:8080/a.m3u8\"\n[crowd]\nsize = 2\n[crowd.player]\nhar = {path:?}\n\
                 origins = {{ \"https://cdn.example\" = \"http://10.9.9.9\" }}\n"
            );
            Scenario::parse(&text).unwrap().plan()
        };
        let of_plan = plan(&har);
        let pages = Pages::read(&of_plan).unwrap();
        let urls = |pages: &Pages| {
            let plan = pages.plans.values().next().unwrap();
            plan.requests.iter().map(|request| request.url.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(urls(&pages), ["http://127.0.0.1:8080/", "http://10.9.9.9/a.png"]);
        let asked = std::cell::RefCell::new(Vec::new());
        let pages = pages
            .within(&of_plan, &|url| {
                asked.borrow_mut().push(url.to_string());
                Err(format!("{} has not consented", url.host_str().unwrap()))
            })
            .unwrap();
        assert!(asked.borrow().iter().all(|url| url == "http://10.9.9.9/"), "{asked:?}");
        assert_eq!(urls(&pages), ["http://127.0.0.1:8080/"]);
        let warnings = pages.warnings().join("\n");
        for part in [
            "1 requests are repeated",
            "https://ads.example 1",
            "https://cdn.example 1",
            "10.9.9.9 has not",
        ] {
            assert!(warnings.contains(part), "{warnings}");
        }
        // Another service of the target's host is not the target.
        for (origin, is_asked) in
            [("http://127.0.0.1:9200", true), ("http://127.0.0.1:8080", false)]
        {
            let rule =
                OriginRule { recorded: "https://cdn.example".into(), requested: origin.into() };
            let said = refusal(&rule, &of_plan, &|_| Err("it has not consented".into()));
            assert_eq!(said.is_some(), is_asked, "{origin}");
        }
        std::fs::write(&har, "{").unwrap();
        for path in [har, folder.path().join("none.har")] {
            let error = format!("{:?}", Pages::read(&plan(&path)).err().unwrap());
            assert!(
                error.contains("player.har of viewers cannot be used") && error.contains(".har: "),
                "{error}"
            );
        }
    }
}
