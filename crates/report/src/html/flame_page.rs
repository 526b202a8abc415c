//! Profiles on a page: where the time went by thread and function, what kind of work it was, the
//! flame graph, and what changed between two moments.

use throng_observation::host::{Change, Profile, ProfileMethod, SelfTime, compare};

use super::flame;
use super::markup::{escape, notes, table, titled_table};
use super::page::document_with;
use crate::profile::{how, percent};

/// Threads shown, functions of each, and changes.
const THREADS: usize = 8;
const FUNCTIONS: usize = 6;
const CHANGES: usize = 20;

/// A page with these profiles only. Of several, two are compared: the full server with good service
/// and the one that failed, else the first and the last.
#[must_use]
pub fn page(title: &str, profiles: &[Profile]) -> String {
    let body = format!("<h1>{}</h1>{}", escape(title), sections(profiles));
    document_with(title, flame::STYLE, flame::SCRIPT, &body)
}

/// The same as parts of a page that has [`flame::STYLE`] and [`flame::SCRIPT`].
pub(crate) fn sections(profiles: &[Profile]) -> String {
    let mut out: String = profiles.iter().map(section).collect();
    if let Some((before, after)) = compared(profiles) {
        out.push_str(&comparison(before, after));
    }
    out
}

/// The two profiles that are compared: those of the passing and of the failing load, else the first
/// and the last.
fn compared(profiles: &[Profile]) -> Option<(&Profile, &Profile)> {
    let at = |moment: &str| profiles.iter().rfind(|profile| profile.moment == moment);
    let is_alike = |(before, after): &(&Profile, &Profile)| before.method == after.method;
    let ends = || match profiles {
        [first, .., last] => Some((first, last)),
        _ => None,
    };
    at("full").zip(at("fail")).filter(is_alike).or_else(|| ends().filter(is_alike))
}

fn section(profile: &Profile) -> String {
    let time = SelfTime::of(profile);
    let heading = match profile.moment.as_str() {
        "" => "Where the time went".to_owned(),
        moment => format!("Where the time went: {moment}"),
    };
    let mut out = format!(
        "<section><h2>{}</h2><p class=\"over\">{}</p>",
        escape(&heading),
        escape(&how(profile, &time))
    );
    out.push_str(&notes(&profile.limits));
    let is_clock = profile.method == ProfileMethod::CpuClock;
    let rows: Vec<Vec<String>> = time
        .threads
        .iter()
        .take(THREADS)
        .flat_map(|thread| {
            thread.symbols.iter().take(FUNCTIONS).enumerate().map(move |(nth, symbol)| {
                let (name, cores) = if nth > 0 {
                    (String::new(), String::new())
                } else {
                    let name = match thread.threads {
                        1 => thread.thread.clone(),
                        many => format!("{} (of {many} threads)", thread.thread),
                    };
                    (
                        name,
                        thread
                            .cores
                            .map_or_else(|| percent(thread.share), |cores| format!("{cores:.2}")),
                    )
                };
                let family = symbol.family.map_or("", |family| family.words()).to_owned();
                let frame = &symbol.frame;
                vec![
                    name,
                    cores,
                    percent(symbol.share),
                    frame.symbol.clone(),
                    frame.module.clone(),
                    family,
                ]
            })
        })
        .collect();
    let second = if is_clock { "cores" } else { "of all" };
    let header = ["thread", second, "of its time", "function", "file", "kind"];
    out.push_str(&titled_table("", &header, &rows));
    let kinds: Vec<Vec<String>> = time
        .families
        .iter()
        .filter(|time| time.within_share >= 0.005)
        .map(|time| {
            vec![
                time.family.words().to_owned(),
                percent(time.own_share),
                percent(time.within_share),
            ]
        })
        .collect();
    let header = ["kind of work", "in its functions", "and what they called"];
    out.push_str(&titled_table("", &header, &kinds));
    out.push_str(&flame::graph(profile));
    out.push_str("</section>");
    out
}

/// Least samples of each profile for a comparison: with fewer, differences are chance.
const SAMPLES_MIN: u64 = 30;

fn comparison(before: &Profile, after: &Profile) -> String {
    let counts = [before, after].map(|profile| SelfTime::of(profile).samples);
    if counts.iter().any(|count| *count < SAMPLES_MIN) {
        let [before, after] = counts;
        return format!(
            "<p class=\"over\">The change between these moments is not shown: {before} samples \
             before and {after} after are too few. A server that does nothing gives none.</p>"
        );
    }
    let rows: Vec<Vec<String>> = compare(before, after)
        .into_iter()
        .filter(Change::is_clear)
        .take(CHANGES)
        .map(|change| {
            let points = (change.after - change.before) * 100.0;
            vec![
                change.frame.symbol,
                change.frame.module,
                percent(change.before),
                percent(change.after),
                format!("{}{:.1}", if points < 0.0 { "-" } else { "" }, points.abs()),
            ]
        })
        .collect();
    let name = |profile: &Profile, other: &str| match profile.moment.as_str() {
        "" => other.to_owned(),
        moment => moment.to_owned(),
    };
    let heading = format!("What changed: {} to {}", name(before, "before"), name(after, "after"));
    format!(
        "<section><h2>{}</h2><p class=\"over\">Functions whose share changed by more than the \
         sampling error.</p>{}{}</section>",
        escape(&heading),
        table(&["function", "file", "before", "after", "points"], &rows),
        flame::comparison(before, after)
    )
}
