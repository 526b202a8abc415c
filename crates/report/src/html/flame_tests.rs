use super::*;
use crate::html::flame_page::{page, sections};
use crate::profile::tests::example;

/// Left edge, width and top of the bar of a function, in percent and pixels.
fn bar(svg: &str, symbol: &str) -> Option<(f64, f64, f64)> {
    let bar = svg
        .split("<svg class=\"bar-of-time")
        .find(|part| part.contains(&format!(">{symbol}</text>")))?;
    let number = |name: &str| {
        let from = bar.find(&format!(" {name}=\""))? + name.len() + 3;
        bar.get(from..)?.split(['"', '%']).next()?.parse().ok()
    };
    Some((number("x")?, number("width")?, number("y")?))
}

#[test]
fn bars_are_as_wide_as_their_share_and_lie_under_their_caller() {
    let svg = graph(&example(&[("w", &["hot", "main"], 70), ("w", &["cold", "main"], 30)]));
    let row = ROW_PX as f64;
    assert_eq!(bar(&svg, "all"), Some((0.0, 100.0, 0.0)));
    assert_eq!(bar(&svg, "w"), Some((0.0, 100.0, row)));
    assert_eq!(bar(&svg, "main"), Some((0.0, 100.0, 2.0 * row)));
    assert_eq!(bar(&svg, "hot"), Some((0.0, 70.0, 3.0 * row)));
    assert_eq!(bar(&svg, "cold"), Some((70.0, 30.0, 3.0 * row)));
    assert!(svg.contains("<title>hot (server): 70.0 %, 70 samples</title>"));
}

#[test]
fn what_cannot_be_seen_is_not_drawn() {
    let svg = graph(&example(&[("w", &["wide"], 99_999), ("w", &["narrow"], 1)]));
    assert!(bar(&svg, "wide").is_some() && bar(&svg, "narrow").is_none());
}

#[test]
fn a_graph_is_bounded_however_many_functions_there_are() {
    let names: Vec<String> = (0..20_000).map(|n| format!("f{n}")).collect();
    let frames: Vec<Vec<&str>> =
        names.chunks(200).map(|chunk| chunk.iter().map(String::as_str).collect()).collect();
    let stacks: Vec<(&str, &[&str], u32)> =
        frames.iter().map(|frames| ("w", frames.as_slice(), 1)).collect();
    let svg = graph(&example(&stacks));
    assert!(svg.matches("<rect").count() <= BARS_MAX);
    assert!(svg.len() < 600_000, "{}", svg.len());
}

#[test]
fn a_comparison_shows_what_grew_and_what_shrank() {
    let before = example(&[("w", &["grows"], 10), ("w", &["shrinks"], 80), ("w", &["same"], 10)]);
    let after = example(&[("w", &["grows"], 500), ("w", &["shrinks"], 400), ("w", &["same"], 100)]);
    let svg = comparison(&before, &after);
    let class_of = |symbol: &str| {
        let part = svg
            .split("<svg class=\"")
            .find(|part| part.contains(&format!(">{symbol}</text>")))
            .unwrap();
        part.split('"').next().unwrap().to_owned()
    };
    assert_eq!(class_of("grows"), "bar-of-time grew s4");
    assert_eq!(class_of("shrinks"), "bar-of-time shrank s4");
    assert_eq!(class_of("same"), "bar-of-time same");
    assert!(svg.contains("grows (server): 10.0 % before, 50.0 % after"));
}

#[test]
fn a_page_of_profiles_holds_all_it_shows_and_nothing_gets_out_of_its_place() {
    let hostile = "</title></svg><script>alert(1)</script>";
    let mut profile = example(&[(hostile, &[hostile, "main"], 50)]);
    profile.moment = hostile.into();
    profile.limits = vec![hostile.into()];
    profile.frames[0].module = hostile.into();
    let page = page(hostile, &[profile.clone(), profile]);
    assert!(!page.contains("<script>alert") && !page.contains("</svg><script"));
    for load in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(load), "{load}");
    }
    assert!(page.contains("What changed"));
}

#[test]
fn what_passed_is_compared_with_what_failed_and_else_the_first_with_the_last() {
    let page = |moments: &[&str]| {
        let profile =
            |moment: &&str| Profile { moment: (*moment).into(), ..example(&[("w", &["f"], 50)]) };
        let page = sections(&moments.iter().map(profile).collect::<Vec<_>>());
        page.split("What changed: ").nth(1).map(|rest| rest.split('<').next().unwrap().to_owned())
    };
    for (moments, compared) in [
        (&["baseline", "full", "fail"][..], Some("full to fail")),
        // The search looked at the failing load first.
        (&["baseline", "fail", "full"], Some("full to fail")),
        (&["baseline", "fail"], Some("baseline to fail")),
        (&["30s", "full", "60s"], Some("30s to 60s")),
        (&["fail"], None),
    ] {
        assert_eq!(page(moments).as_deref(), compared, "{moments:?}");
    }
}

#[test]
fn an_empty_profile_is_reported() {
    let page = sections(&[example(&[])]);
    assert!(page.contains("Nothing was sampled") && !page.contains("NaN"));
}
