use std::collections::BTreeSet;
use std::time::Duration;

use throng_observation::run::RunData;

use super::{ids, landmarks};
use crate::server::tests::{searched, watched};
use crate::{conference, example, html, summarise};

/// Pages of all kinds of runs.
fn pages() -> [(&'static str, String); 6] {
    [
        ("nothing", RunData::default()),
        ("healthy", example::healthy(5, 10)),
        ("degraded", example::degraded()),
        ("conference", conference::tests::lesson(6, 20, |_| 1.0)),
        ("watched", watched()),
        ("search", searched()),
    ]
    .map(|(name, run)| {
        let summary = summarise(&run, &example::objectives(), Duration::ZERO);
        (name, html::render(&run, &summary))
    })
}

/// What stands between `begin` and the next quotation mark, for each `begin`.
fn each<'a>(page: &'a str, begin: &'a str) -> impl Iterator<Item = &'a str> {
    page.split(begin).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn ids_are_unique_and_every_link_leads_to_one() {
    for (name, page) in pages() {
        let all: Vec<&str> = ids(&page).collect();
        let unique: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(unique.len(), all.len(), "{name}: {all:?}");
        let links: BTreeSet<&str> =
            each(&page, " href=\"#").chain(each(&page, " aria-labelledby=\"")).collect();
        assert!(links.len() > 10, "{name}: {links:?}");
        assert!(links.is_subset(&unique), "{name}: {:?}", links.difference(&unique));
    }
}

#[test]
fn the_contents_lead_to_every_section_and_no_level_of_headings_is_left_out() {
    for (name, page) in pages() {
        let (nav, main) = page.split_once("</nav><main>").expect("the landmarks");
        assert_eq!(nav.matches("<li><a href=\"#").count(), main.matches("<h2").count(), "{name}");
        let levels: Vec<u32> =
            main.split("<h").filter_map(|rest| rest.chars().next()?.to_digit(10)).collect();
        assert!(levels.starts_with(&[1, 2]), "{name}: {levels:?}");
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{name}: {levels:?}");
        assert_eq!(levels.iter().filter(|level| **level == 1).count(), 1, "{name}");
    }
}

#[test]
fn every_table_has_a_name_and_heads_and_scrolls_by_itself() {
    for (name, page) in pages() {
        let tables: Vec<&str> =
            page.split("<table").skip(1).filter_map(|rest| rest.split("</tr>").next()).collect();
        assert!(!tables.is_empty(), "{name}");
        for table in tables {
            assert!(table.contains(" aria-labelledby=\"") && table.contains(" scope=\"col\""));
        }
        assert_eq!(
            page.matches("<table").count(),
            page.matches("<div class=\"scroll\" role=\"group\" tabindex=\"0\"").count()
                - page.matches("class=\"bars-of-time\"").count(),
            "{name}"
        );
    }
}

#[test]
fn headings_get_an_id_and_a_link_to_themselves() {
    assert_eq!(
        landmarks(
            "<h1>t</h1><h2>A &amp; b</h2><p>x</p><h2 class=\"unseen\">A &amp; b</h2><table>\
             </table><h2 id=\"c\">D</h2><h3>E <small>s</small></h3>"
        ),
        "<nav aria-label=\"Contents\"><details><summary>Contents</summary><ol>\
         <li><a href=\"#a-amp-b\">A &amp; b</a></li><li><a href=\"#a-amp-b-2\">A &amp; b</a></li>\
         <li><a href=\"#c\">D</a></li></ol></details></nav><main><h1>t</h1>\
         <h2 id=\"a-amp-b\"><a href=\"#a-amp-b\">A &amp; b</a></h2><p>x</p>\
         <h2 class=\"unseen\" id=\"a-amp-b-2\">A &amp; b</h2>\
         <table aria-labelledby=\"a-amp-b-2\"></table><h2 id=\"c\"><a href=\"#c\">D</a></h2>\
         <h3 id=\"e\"><a href=\"#e\">E</a> <small>s</small></h3></main>"
    );
    assert_eq!(landmarks("<h2> </h2>x"), "<main><h2> </h2>x</main>");
    // A name of another alphabet has no letter of an id.
    assert!(landmarks("<h2>Ж</h2>").contains("<h2 id=\"section\"><a href=\"#section\">Ж</a>"));
}

#[test]
fn a_head_leads_to_its_term_once_in_a_section() {
    let page = |glossary: &str| {
        landmarks(&format!(
            "<h2>a</h2><dt>jitter</dt><th>jitter p95</th><h2>b</h2><th>jitter, p95</th>{glossary}"
        ))
    };
    let with = page("<dl><dt id=\"term-jitter\">Jitter</dt></dl>");
    assert_eq!(with.matches("href=\"#term-jitter\"").count(), 2, "{with}");
    assert!(with.contains("<dt><a href=\"#term-jitter\">jitter</a></dt><th>jitter p95</th>"));
    assert!(!page("").contains("term-jitter"));
}
