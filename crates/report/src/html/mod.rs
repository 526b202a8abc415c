//! `report.html`: one self-contained page that loads nothing from a network.

use throng_observation::run::RunData;

use crate::price;
use crate::summary::Summary;

mod canary;
mod cause;
mod chart;
mod charts;
mod chat;
pub mod compare;
mod conference;
mod decoded;
mod demand;
mod first_screen;
mod flame;
mod flame_page;
mod glossary;
mod heatmap;
pub mod live;
mod marks;
mod markup;
pub mod matrix;
mod outline;
mod over_time;
pub mod page;
mod playback;
mod search;
mod server;
mod stack;
#[cfg(test)]
mod style_tests;
mod tables;
mod timeline;
pub mod trend;

pub use flame_page::page as profile_page;
pub(crate) use over_time::OverTime;
pub(crate) use tables::{WORST_MAX, trouble};
pub(crate) use timeline::Timeline;

/// The script of the page. Its parts share their names in a block that nothing else sees.
const SCRIPT: &str = concat!(
    "\"use strict\";\n{\n",
    include_str!("script/plots.js"),
    include_str!("script/cursor.js"),
    include_str!("script/zoom.js"),
    include_str!("script/input.js"),
    "}\n",
);

/// The whole page.
#[must_use]
pub fn render(run: &RunData, summary: &Summary) -> String {
    let has_profiles = !run.host.profiles.is_empty();
    let (style, script) = if has_profiles { (flame::STYLE, flame::SCRIPT) } else { ("", "") };
    let body = sections(run, summary).map(|(_, section)| section).concat();
    let title = format!("throng: {}", summary.headline);
    page::document_with(&title, style, &format!("{SCRIPT}{script}"), &body)
}

/// The sections of the page in their order, by the names of the parts that they are where it is
/// served.
fn sections(run: &RunData, summary: &Summary) -> [(&'static str, String); 14] {
    [
        ("answer", first_screen::render(run, summary)),
        ("search", search::render(run, summary)),
        ("demand", demand::render(summary)),
        ("price", price::section(summary)),
        ("conference", conference::render(run, summary)),
        ("playback", playback::render(run, summary)),
        ("chat", chat::render(run, summary)),
        ("marks", marks::render(run)),
        ("charts", charts::render(run, summary)),
        ("server", server::render(run)),
        ("canary", canary::render(summary)),
        ("decoded", decoded::render(summary)),
        ("tables", tables::render(run, summary)),
        ("glossary", glossary::render()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example, summarise};
    use std::time::Duration;
    use throng_observation::fleet::WorkerInfo;
    use throng_observation::run::Ending;
    use throng_observation::{Failure, FailureReason, Outcome};

    fn page(run: &RunData) -> String {
        render(run, &summarise(run, &example::objectives(), Duration::ZERO))
    }

    #[test]
    fn the_page_asks_nothing_of_any_network() {
        let mut run = example::degraded();
        run.info.target = "ws://media.example/app".into();
        let page = page(&run);
        for load in ["http://", "https://", "src=", "@import", "url(", "<iframe", "fetch("] {
            assert!(!page.contains(load), "{load}");
        }
    }

    #[test]
    fn hostile_names_stay_text() {
        let hostile = "\"><script>alert(1)</script><img onerror='x'>";
        let mut run = example::degraded();
        run.info.target = hostile.into();
        run.info.scenario = hostile.into();
        run.info.clock.basis = hostile.into();
        run.info.warnings = vec![hostile.into()];
        run.info.cohorts = vec![hostile.into()];
        run.info.generator_host.insert(hostile.into(), hostile.into());
        run.participants[3].outcome =
            Some(Outcome::Failed(Failure::new(FailureReason::Ice, hostile)));
        let page = page(&run);
        assert!(!page.contains("<script>alert") && !page.contains("<img"));
        assert!(page.contains("&lt;script&gt;alert(1)"));
    }

    #[test]
    fn the_scenario_of_a_run_that_stored_a_secret_is_shown_without_it() {
        let mut run = example::degraded();
        run.info.scenario = "[[watch]]\ncommand = [\"srv\", \"--token\", \"S3CRET\"]\n".into();
        let page = page(&run);
        assert!(page.contains("Scenario as run") && page.contains("--token"));
        assert!(!page.contains("S3CRET"));
    }

    #[test]
    fn every_shape_of_run_renders_sensibly() {
        let mut unfinished = example::degraded();
        unfinished.ending = Ending::Unfinished;
        unfinished.ended_at = None;
        for (name, run, expect) in [
            ("empty", RunData::default(), "nothing to judge"),
            (
                "all failed",
                example::all_failed(),
                "None of 20 viewers connected: 20 failed with http_404",
            ),
            ("partial", unfinished, "Partial: objective"),
            ("audio only", example::audio_only(), "Nothing was measured"),
            ("one second", example::healthy(1, 1), "1 viewer played cleanly for 1 s"),
            ("healthy", example::healthy(100, 60), "100 viewers played cleanly for 60 s"),
            ("limited", example::limited(), "Invalid: the generator was the limit"),
        ] {
            let page = page(&run);
            assert!(page.contains(expect), "{name}: {expect}");
            assert!(!page.contains("NaN") && !page.contains("inf "), "{name}");
        }
    }

    #[test]
    fn a_run_without_an_ending_is_called_unfinished() {
        let mut run = example::healthy(5, 10);
        assert!(page(&run).contains("\">met</span>"));
        run.ending = Ending::Unfinished;
        assert!(page(&run).contains("\">unfinished</span>"));
        run.in_progress = true;
        assert!(page(&run).contains("\">in progress</span>"));
    }

    #[test]
    fn only_viewers_with_trouble_are_called_the_worst() {
        let rows = |run: &RunData| {
            let page = page(run);
            let section =
                page.split(">Worst viewers</a></h2>").nth(1).expect("the section").to_owned();
            section.split("<h2").next().unwrap_or_default().matches("<tr>").count()
        };
        assert_eq!(rows(&example::healthy(20, 20)), 0);
        assert!(rows(&example::degraded()) > 1);
    }

    #[test]
    fn the_machine_and_the_scenario_are_shown_in_readable_units() {
        let mut run = example::healthy(5, 10);
        run.info.generator_host = [("memory_bytes", "25276944384"), ("cores", "2")]
            .map(|(k, v)| (k.into(), v.into()))
            .into();
        let page = page(&run);
        assert!(page.contains("generator: memory") && page.contains("25.3 GB"), "{page}");
        assert!(page.contains("generator: cores") && !page.contains("memory_bytes"));
    }

    #[test]
    fn the_generators_of_a_fleet_are_its_workers() {
        let mut run = example::healthy(5, 10);
        run.info.generator_host = [("cores".into(), "2".into())].into();
        run.info.workers =
            ["a", "b"].map(|name| WorkerInfo { name: name.into(), ..WorkerInfo::default() }).into();
        let page = page(&run);
        assert!(
            page.contains("2 workers (a, b), in the table below")
                && page.contains(">Workers</a></h3>")
        );
        assert!(
            page.contains("coordinator: cores") && !page.contains("generator: cores"),
            "{page}"
        );
    }

    #[test]
    fn the_servers_charts_share_the_time_axis_of_the_viewers() {
        let run = crate::server::tests::watched();
        let page = page(&run);
        for text in [
            ">The server</a></h2>",
            "The busiest thread was <b>hloop 1</b> of janus (tid 4012)",
            "CPU by thread against viewers",
            "Viewers: delay",
            "event_loops (janus.jcfg: general), default 0: As many as cores",
            "old_packet_discarded",
            "of the bytes sent by the interfaces is in no access log",
            "srtp_protect",
            "janus_ice_outgoing_traffic_handle&lt;Some &amp; thing&gt;",
            "What could not be read",
            "at most 0.4 ms",
            "janus_sessions",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf "));
    }

    #[test]
    fn a_conference_shows_each_pair_and_the_rates_in_and_out() {
        let run =
            crate::conference::tests::lesson(30, 60, |second| if second < 25 { 1.0 } else { 0.5 });
        let page = page(&run);
        for text in [
            ">Streams between participants</a></h2>",
            "870 of 870 planned video streams",
            "<b>In rises, out falls</b>",
            "plan: N × b in",
            "Into the server and out of it",
            "Video: time to first frame",
            "Video: loss",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf "));
        assert!(!self::page(&example::healthy(5, 10)).contains("Streams between participants"));
        // A failed join leaves rows and columns without streams.
        let mut short = crate::conference::tests::lesson(25, 30, |_| 1.0);
        crate::conference::tests::fail_to_join(&mut short, 20);
        let short = self::page(&short);
        assert!(
            short.contains("<b>380 of 600 planned video streams</b> played (20 of 25 connected)")
        );
        assert!(short.contains("senders, 0 to 24") && short.contains("class=\"h-never\""));
    }

    #[test]
    fn limits_are_reported_as_they_are_applied() {
        use throng_observation::limits::{LAG_P99_MS_MAX, THREAD_CPU_RATIO_MAX};
        let page = page(&example::healthy(10, 20));
        let (lag, cpu) = (
            format!("limit {LAG_P99_MS_MAX:.0} ms"),
            format!("limit {:.0} %", THREAD_CPU_RATIO_MAX * 100.0),
        );
        assert!(page.contains(&lag) && page.contains(&cpu));
        assert!(page.contains(&format!("more than {LAG_P99_MS_MAX:.0} ms late")));
    }

    #[test]
    fn a_day_long_run_stays_within_the_points_of_a_screen() {
        let timeline = timeline::Timeline::of(&example::crowd_only(86_400));
        assert!(timeline.points.len() as i64 <= timeline::POINTS_MAX);
    }
}
