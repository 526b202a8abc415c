//! A watched run, and the size and the price of a larger crowd from it.

use serde_json::Value;
use throng_sim::namespace::Namespace;
use throng_sim::{agreement, requires_root};

use crate::throng::{Ran, Stage, figure, plain, run};

const PRICES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prices/");

fn said(args: &[&str]) -> (Option<i32>, String) {
    let output = plain(args);
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (output.status.code(), text)
}

/// Nothing in the answer contradicts what `throng price` says of the same folder: what the crowd
/// that its change would give needs, and how many users one more of each resource serves, which its
/// page says too.
#[track_caller]
pub(crate) fn agrees_with(ran: &Ran) {
    let Some(users) = agreement::predicted(&ran.summary()) else { return };
    let (folder, asked) = (ran.folder().display().to_string(), agreement::price_of(users));
    let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
    let output = plain(&[&["price", &folder][..], &asked[..]].concat());
    let price: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|wrong| panic!("{wrong}: {output:?}\n{ran}"));
    assert_eq!(agreement::contradiction(&ran.summary(), &price), None, "{price:#}\n{ran}");

    let page = std::fs::read_to_string(ran.folder().join("report.html")).unwrap();
    let (_, text) = said(&["price", &folder, "--viewers", "100"]);
    for (resource, users) in sizes(&page) {
        let is_it = |line: &str| line.contains(resource) && line.contains(users);
        assert!(text.lines().any(is_it), "{resource}: {users}\n{text}\n{ran}");
    }
}

/// The answer predicts what its change gives, the page has what one more of a resource serves, and
/// [none contradicts the price](agrees_with).
#[track_caller]
pub(crate) fn is_predicted(ran: &Ran) {
    let summary = ran.summary();
    assert!(agreement::predicted(&summary).is_some(), "{:#}\n{ran}", summary["bottleneck"]);
    let page = std::fs::read_to_string(ran.folder().join("report.html")).unwrap();
    assert!(!sizes(&page).is_empty(), "no size: {:#}\n{ran}", summary["demand"]);
    agrees_with(ran);
}

/// The section *Size* of a page: a resource, and the users that one more of it serves.
fn sizes(page: &str) -> Vec<(&str, &str)> {
    let Some((_, section)) = page.split_once(">Size</a></h2>") else { return Vec::new() };
    let table = section.split("</table>").next().unwrap_or_default();
    let cells = table.split("</td>").filter_map(|cell| Some(cell.rsplit_once('>')?.1));
    let cells: Vec<&str> = cells.collect();
    cells.chunks_exact(2).filter_map(|row| Some((*row.first()?, *row.get(1)?))).collect()
}

#[test]
fn the_sizes_of_a_page_are_read() {
    let page = "<h2 id=\"size\"><a href=\"#size\">Size</a></h2><div><table><tbody><tr><td>CPU</td>\
                <td class=\"n\">20.1 per core (19–21)</td></tr></tbody></table></div>\
                <table><tr><td>other</td><td>1</td></tr></table>";
    assert_eq!(sizes(page), [("CPU", "20.1 per core (19–21)")]);
    assert!(sizes("<h2>Other</h2>").is_empty());
}

/// 25 s: 5 s of the idle server, and five loads of 4 s each.
#[test]
fn a_larger_crowd_is_sized_and_priced_from_a_watched_run() {
    if !requires_root() {
        return;
    }
    // Other tests use the loopback interface too: this one has its own.
    let namespace = Namespace::new("price").unwrap();
    let stage = Stage::start(Some(&namespace), "127.0.0.1:0", &[]);
    let watch = format!("pid={}", stage.pid());
    // Five loads of 4 s each: 12, 24, 36, 48, 60.
    let arrival = "crowd.arrival={ burst = { size = 12, every = \"4s\" } }";
    let target = stage.target();
    let crowd = [
        "view", &target, "-n", "60", "--for", "20s", "--set", arrival, "--watch", &watch, "--quiet",
    ];
    let ran = run(Some(&namespace), &crowd);
    let folder = ran.folder().display().to_string();
    let price = |more: &[&str]| {
        said(&[&["price", &folder, "--viewers", "600", "--hours", "2"], more].concat())
    };

    let (code, text) = price(&["--json", "--prices", &format!("{PRICES}large-cloud.toml")]);
    assert!(matches!(code, Some(0 | 4)), "{text}\n{ran}");
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|wrong| panic!("{wrong}: {text}"));
    // What a viewer of the test card received, measured here and by the run itself.
    let received_bps = figure(&report, "traffic.received_bytes.per_second.value") * 8.0;
    let by_run =
        figure(&ran.summary(), "video.track_bps") + figure(&ran.summary(), "audio.track_bps");
    assert!(
        (received_bps / by_run - 1.0).abs() < 0.25,
        "{received_bps} against {by_run} of payload\n{ran}"
    );
    let terms = report["cost"]["terms"].as_array().expect("terms");
    let egress = terms.iter().find(|term| term["kind"] == "egress").expect("egress");
    let gb = received_bps / 8.0 * 600.0 * 7_200.0 / 1e9;
    let expect = (gb - 100.0) * 0.09;
    assert!(
        (figure(egress, "amount.value") - expect).abs() < 0.01 * expect,
        "{egress:#} for {gb} GB"
    );
    let lines = report["size"]["needs"].as_array().expect("needs");
    let line = lines.iter().find(|need| need["resource"] == "nic_sent").expect("a line");
    let used_bps = figure(line, "used.value") * 8.0;
    // The loopback interface also carries the feedback of viewers.
    assert!((0.9..1.6).contains(&(used_bps / (received_bps * 600.0))), "{line:#}\n{received_bps}");
    // On a busy machine what a viewer costs of the CPU cannot always be told from noise.
    let is_cpu = |need: &Value| need["resource"] == "cpu" && !need["users_per"].is_null();
    assert_eq!(code == Some(0), lines.iter().any(is_cpu), "{text}");

    let (_, text) = price(&["--prices", &format!("{PRICES}own-servers.toml")]);
    for part in
        ["600 viewers for 2 h cost", "illustration; check before use", "1,000 viewers", "egress"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let (_, text) = price(&[]);
    assert!(!text.contains("EUR") && text.contains("line, sent"), "{text}");
}

#[test]
fn what_cannot_be_priced_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let prices = folder.path().join("prices.toml");
    std::fs::write(
        &prices,
        "provider = \"p\"\nas_of = \"2026-11\"\ncurrency = \"EUR\"\n[egress]\nper_gb = -1\n",
    )
    .unwrap();
    let prices = prices.display().to_string();
    for (arguments, says) in [
        (vec!["price", "/nowhere", "--viewers", "10"], "/nowhere"),
        (vec!["price", "/nowhere", "--viewers", "0"], "whole number"),
        (vec!["price", "/nowhere", "--viewers", "10", "--target-utilisation", "1.5"], "0.05 to 1"),
        (vec!["price", "/nowhere", "--viewers", "10", "--hours", "0"], "above 0"),
        (
            vec!["price", "/nowhere", "--viewers", "10", "--prices", "/no.toml"],
            "cannot read /no.toml",
        ),
        (
            vec!["price", "/nowhere", "--viewers", "10", "--prices", &prices],
            "`egress.per_gb` is negative",
        ),
        (
            vec!["price", "/nowhere", "--viewers", "10", "--prices", &prices],
            "there is no price of compute",
        ),
    ] {
        let (code, text) = said(&arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
}
