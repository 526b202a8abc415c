//! URL templates, cohorts with their own URLs, and streams, in a file and in a plan.

use throng_observation::run::CohortId;

use crate::Destination;
use crate::Part;
use crate::Subscription;
use crate::flags::Override;
use crate::scenario::Scenario;

const PUBLISHERS: &str = "[target]\nurl = \"whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream={n}\"\n[crowd]\nsize = 5\n";
const BOTH: &str = "[target]\nurl = \"whep+http://127.0.0.1:1985/rtc/v1/whep/?app=live&stream={stream}\"\n\
     [[crowd]]\nname = \"publishers\"\nsize = 3\nurl = \"whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream={n}\"\n\
     publish = { video = \"360p\", codec = \"h264\" }\n\
     [[crowd]]\nname = \"viewers\"\nsize = 7\nstreams = 3\n";

fn read(text: &str) -> Scenario {
    Scenario::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    Scenario::parse(text).expect_err(text).to_string()
}

/// The URLs of all joins of a cohort, in their order.
fn urls(scenario: &Scenario, cohort: u16) -> Vec<String> {
    let plan = scenario.plan();
    let way = &plan.destinations[usize::from(cohort)];
    let joins = plan.joins.iter().filter(|join| join.cohort == CohortId(cohort));
    let urls = joins.map(|join| way.endpoint(join.place, join.participant.0.into()).url);
    urls.map(|url| url.in_clear().to_string()).collect()
}

#[test]
fn many_publishers_have_a_stream_each() {
    let scenario = read(PUBLISHERS);
    assert_eq!(scenario.crowd[0].name, "publishers");
    let streams: Vec<String> = urls(&scenario, 0)
        .iter()
        .filter_map(|url| Some(url.rsplit_once('=')?.1.to_owned()))
        .collect();
    assert_eq!(streams, ["0", "1", "2", "3", "4"]);
    let plan = scenario.plan();
    assert!(plan.expected.server_in_mbit_per_s > 5.0 * 0.256, "{:?}", plan.expected);
    assert!(plan.expected.server_out_mbit_per_s < 0.1, "{:?}", plan.expected);
}

#[test]
fn a_replacement_gets_the_stream_of_its_slot() {
    let churn = format!("{PUBLISHERS}stay = {{ exactly = \"20s\", rejoin = true }}\n");
    let urls = urls(&read(&churn), 0);
    assert_eq!(urls.len(), 15);
    for (first, again) in urls.iter().zip(urls.iter().skip(5)) {
        assert_eq!(first, again);
    }
    let reconnect = format!("{PUBLISHERS}reconnect = {{ at = \"30s\" }}\n");
    let mut back = self::urls(&read(&reconnect), 0);
    back.sort();
    back.dedup();
    assert_eq!(back.len(), 5);
}

#[test]
fn viewers_are_spread_over_the_streams_of_publishers_in_one_run() {
    let scenario = read(BOTH);
    assert!(urls(&scenario, 0).iter().all(|url| url.contains("/whip/")));
    let last: Vec<String> = urls(&scenario, 1)
        .iter()
        .filter_map(|url| Some(url.rsplit_once('=')?.1.to_owned()))
        .collect();
    assert_eq!(last, ["0", "1", "2", "0", "1", "2", "0"]);
    let text = scenario.plan().describe();
    for line in [
        "target      whep+http://127.0.0.1:1985/rtc/v1/whep/?app=live&stream={stream} (WHEP)\n",
        "3 publishers, one every 100 ms with jitter (seed 1), at whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream={n} (WHIP)\n",
        "7 viewers, one every 100 ms with jitter (seed 1), on 3 streams in turn\n",
        "url         whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream=0\n",
        "url         whep+http://127.0.0.1:1985/rtc/v1/whep/?app=live&stream=2\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert_eq!(
        Scenario::parse(&scenario.to_toml()).map(|again| again.crowd),
        Ok(scenario.crowd.clone())
    );
    let zipf = BOTH.replace("streams = 3", "streams = { count = 3, zipf = 1.2, seed = 5 }");
    let zipf = read(&zipf);
    assert_eq!(Scenario::parse(&zipf.to_toml()).map(|again| again.crowd), Ok(zipf.crowd.clone()));
    assert!(zipf.plan().describe().contains("on 3 streams by Zipf's law (exponent 1.2, seed 5)"));
}

#[test]
fn a_page_shows_the_first_urls_and_how_many_follow() {
    let text = read(&PUBLISHERS.replace("size = 5", "size = 50")).plan().describe();
    let shown: Vec<&str> = text.lines().filter(|line| line.starts_with("url ")).collect();
    assert_eq!(
        shown,
        [
            "url         whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream=0",
            "url         whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream=1",
            "url         whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream=2 and 47 more",
        ]
    );
}

#[test]
fn rooms_of_any_protocol_are_numbered_by_the_url() {
    let text =
        "[target]\nurl = \"whep+http://127.0.0.1/room-{room}/{n}\"\nrooms = 2\n[crowd]\nsize = 2\n";
    let scenario = read(text);
    assert_eq!(urls(&scenario, 0), ["http://127.0.0.1/room-1/0", "http://127.0.0.1/room-1/1"]);
    assert_eq!(urls(&scenario, 1), ["http://127.0.0.1/room-2/0", "http://127.0.0.1/room-2/1"]);
    assert!(refused(&text.replace("{room}", "a")).contains("write {room} into the URL"));
}

#[test]
fn flags_take_names_as_a_file_does() {
    let overrides = [
        Override::flag("the URL", "target.url", "whep+http://127.0.0.1/{stream}"),
        Override::flag_toml("-n", "crowd.size", "4"),
        Override::flag_toml("--streams", "crowd.streams", "2"),
    ];
    let scenario = Scenario::parse_with("", &overrides).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        urls(&scenario, 0),
        ["http://127.0.0.1/0", "http://127.0.0.1/1", "http://127.0.0.1/0", "http://127.0.0.1/1"]
    );
}

#[test]
fn what_does_not_go_together_says_where_and_what_to_write() {
    let unknown = PUBLISHERS.replace("{n}", "{nr}");
    let error = refused(&unknown);
    assert!(error.contains("line 2, column 64") && error.contains("^^^^\n"), "{error}");
    assert!(error.contains("`target.url`: unknown variable `{nr}`"), "{error}");
    for (from, to, expect) in [
        ("127.0.0.1:1985/rtc/v1/whip/", "127.0.0.{n}:1985/", "scheme, host or port"),
        (
            "url = \"whip+http://127.0.0.1:1985/",
            "url = \"whip+http://127.0.0.1:1986/",
            "has another host",
        ),
        (
            "url = \"whip+http://127.0.0.1:1985/",
            "url = \"whip+http://127.0.0.2:1985/",
            "has another host",
        ),
        ("streams = 3", "", "write streams = 10"),
        ("stream={stream}", "stream=a", "has no effect"),
        ("streams = 3", "streams = 0", "from 1 to 100000"),
        ("streams = 3", "streams = \"many\"", "a number of streams such as 10"),
        ("streams = 3", "streams = { zipf = 1.0 }", "count = 10"),
        ("streams = 3", "streams = { count = 3, zipf = 9 }", "above 5"),
        ("streams = 3", "streams = { count = 3, seed = 9 }", "remove seed, or add zipf"),
        ("streams = 3", "streams = { count = 3, zipff = 1 }", "did you mean `zipf`"),
        (
            "url = \"whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream={n}\"",
            "url = \"gopher://h/x\"",
            "unknown scheme",
        ),
        (
            "url = \"whip+http://127.0.0.1:1985/rtc/v1/whip/?app=live&stream={n}\"",
            "url = \"janus+ws://127.0.0.1:1985/videoroom/1\"",
            "participants of a conference",
        ),
        ("video = \"360p\", ", "", "add video = \"240p\""),
    ] {
        let error = refused(&BOTH.replacen(from, to, 1));
        assert!(error.contains(expect) && error.contains("help: "), "{to}: {error}");
    }
}

#[test]
fn publishers_by_rtsp_send_one_size_and_viewers_may_watch_them() {
    let text = "[target]\nurl = \"rtsp://127.0.0.1:8554/live{n}\"\nrtsp_transport = \"tcp\"\n\
                [[crowd]]\nname = \"publishers\"\nsize = 2\nurl = \"publish+rtsp://127.0.0.1:8554/live{n}\"\n\
                publish = { video = \"360p\", codec = \"h264\" }\n[[crowd]]\nname = \"viewers\"\nsize = 2\n";
    let scenario = read(text);
    assert_eq!(urls(&scenario, 0), ["http://127.0.0.1:8554/live0", "http://127.0.0.1:8554/live1"]);
    let destinations = scenario.destinations();
    let parts: Vec<_> = destinations.iter().map(Destination::part).collect();
    assert_eq!(parts, [Part::Publish, Part::Watch]);
    assert_eq!(destinations[0].target.rtsp_transport.name(), "tcp");
    // Publishers expect to receive nobody: nothing of them is missing.
    let receives: Vec<_> =
        scenario.cohorts().map(|(_, role)| role.subscribe != Subscription::NONE).collect();
    assert_eq!(receives, [false, true]);
    let publish = "publish = { video = \"360p\", codec = \"h264\" }";
    for (to, expect) in [
        ("publish = \"none\"", "publishers publish nothing"),
        ("publish = { simulcast = [\"180p\", \"720p\"] }", "RTSP has no layers"),
        ("layers = \"low\"", "have no effect on RTSP"),
    ] {
        let error = refused(&text.replacen(publish, to, 1));
        assert!(error.contains(expect) && error.contains("help: "), "{to}: {error}");
    }
}
