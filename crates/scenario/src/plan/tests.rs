//! Joins, shares and the load of plans.

use super::*;

fn plan(crowd: &str, duration: &str) -> Plan {
    let text = format!(
        "[target]\nurl = \"whep+http://127.0.0.1/x\"\n[run]\nduration = \"{duration}\"\n[stream]\nvideo = \"1Mbit/s\"\naudio = \"48kbit/s\"\n{crowd}"
    );
    Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan()
}

#[test]
fn a_cohort_that_comes_later_joins_after_the_first() {
    let toml = "[[crowd]]\nname = \"a\"\nsize = 2\narrival = { every = \"1s\" }\n\
                [[crowd]]\nname = \"b\"\nsize = 2\narrival = { every = \"1s\" }\nstarts_at = \"10s\"";
    let plan = plan(toml, "60s");
    let joins: Vec<u64> = plan.joins.iter().map(|join| join.at.as_secs()).collect();
    assert_eq!(joins, [0, 1, 10, 11]);
    assert!(plan.describe().contains("from 10.00 s on"), "{}", plan.describe());
}

#[test]
fn a_scenario_without_jitter_says_so_and_joins_at_an_even_rate() {
    let text = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n[crowd]\nsize = 5\n\
                arrival = { every = \"2s\" }\n[run]\nduration = \"60s\"\n";
    let scenario = Scenario::parse(text).unwrap().without_jitter();
    let joins: Vec<Duration> = scenario.plan().joins.iter().map(|join| join.at).collect();
    assert_eq!(joins, [0, 2, 4, 6, 8].map(Duration::from_secs));
    assert!(!scenario.plan().describe().contains("jitter"), "{}", scenario.plan().describe());
}

#[test]
fn jitter_is_of_what_is_left_of_a_run_that_ends_before_the_last_interval_does() {
    for arrival in ["{ every = \"5s\" }", "{ ramp = \"15s\" }"] {
        let toml = format!("[[crowd]]\nname = \"a\"\nsize = 3\narrival = {arrival}");
        for duration_s in [11, 12, 15, 20] {
            let joins = plan(&toml, &format!("{duration_s}s")).joins;
            let last = joins.last().map_or(0, |join| join.at.as_secs());
            assert!((10..duration_s).contains(&last), "{arrival} {duration_s} s: {joins:?}");
        }
    }
}

#[test]
fn participants_are_numbered_by_their_joins_across_cohorts() {
    let plan = plan(
        "[[crowd]]\nname = \"a\"\nsize = 2\narrival = { every = \"2s\", jitter = false }\n\
         [[crowd]]\nname = \"b\"\nsize = 2\narrival = { every = \"1s\", jitter = false }",
        "10s",
    );
    let joins: Vec<(u32, u16, u64)> = plan
        .joins
        .iter()
        .map(|join| (join.participant.0, join.cohort.0, join.at.as_secs()))
        .collect();
    assert_eq!(joins, [(0, 0, 0), (1, 1, 0), (2, 1, 1), (3, 0, 2)]);
    assert_eq!(plan.cohorts, ["a", "b"]);
}

#[test]
fn rooms_are_filled_one_after_the_other_and_their_streams_stay_within() {
    let lesson = |rooms: u32| {
        let text = format!(
            "[target]\nurl = \"janus+ws://127.0.0.1:8188/videoroom/7\"\nrooms = {rooms}\n[run]\nduration = \"60s\"\n\
             [[crowd]]\nname = \"teachers\"\nsize = 1\narrival = {{ every = \"3s\", jitter = false }}\n\
             [[crowd]]\nname = \"pupils\"\nsize = 3\narrival = {{ every = \"1s\", jitter = false }}"
        );
        Scenario::parse(&text).unwrap_or_else(|error| panic!("{error}")).plan()
    };
    let (one, two) = (lesson(1), lesson(2));
    let cohorts: Vec<u16> = two.joins.iter().map(|join| join.cohort.0).collect();
    assert_eq!(cohorts, [0, 1, 1, 1, 2, 3, 3, 3]);
    assert_eq!(
        two.cohorts,
        ["teachers, room 1", "pupils, room 1", "teachers, room 2", "pupils, room 2"]
    );
    assert_eq!(two.roles.iter().map(|role| role.room).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(two.expected.users, 8);
    for (one, two) in [
        (one.expected.server_in_mbit_per_s, two.expected.server_in_mbit_per_s),
        (one.expected.server_out_mbit_per_s, two.expected.server_out_mbit_per_s),
    ] {
        assert!((two - 2.0 * one).abs() < 1e-9, "{one} {two}");
    }
    assert!(
        two.describe().contains("3 pupils in each of 2 rooms, one every 1.00 s"),
        "{}",
        two.describe()
    );
}

#[test]
fn an_audience_that_rejoins_keeps_its_size() {
    let crowd = "[crowd]\nsize = 3\narrival = { every = \"0s\" }\nstay = { exactly = \"4s\", rejoin = true }";
    let plan = plan(crowd, "10s");
    let visits: Vec<(u64, Option<u64>)> = plan
        .joins
        .iter()
        .map(|join| (join.at.as_secs(), join.leave_at.map(|at| at.as_secs())))
        .collect();
    assert_eq!(
        visits,
        [
            (0, Some(4)),
            (0, Some(4)),
            (0, Some(4)),
            (4, Some(8)),
            (4, Some(8)),
            (4, Some(8)),
            (8, None),
            (8, None),
            (8, None),
        ]
    );
    assert_eq!((plan.expected.users, plan.expected.joins_per_s), (3, 3));
}

#[test]
fn a_final_leave_is_not_counted_twice() {
    let plan = plan("[crowd]\nsize = 10\narrival = { every = \"1s\" }\nstay = \"2s\"", "60s");
    assert_eq!((plan.joins.len(), plan.expected.users), (10, 2));
}

#[test]
fn shares_split_the_plan_and_keep_ids_and_moments() {
    let whole =
        plan("[crowd]\nsize = 11\nstay = { mean = \"3s\", seed = 2, rejoin = true }", "20s");
    let mut together: Vec<Join> =
        (0..3).flat_map(|index| whole.share(Share::new(index, 3).unwrap()).joins).collect();
    together.sort_by_key(|join| join.participant);
    assert_eq!(together, whole.joins);
    assert_eq!(whole.share(Share::ALL), whole);
}

#[test]
fn a_part_of_the_plan_keeps_ids_and_counts_its_own_load() {
    let whole = plan("[crowd]\nsize = 11", "20s");
    let part = whole.part(|number| number % 4 == 1);
    let numbers: Vec<u32> = part.joins.iter().map(|join| join.participant.0).collect();
    assert_eq!((numbers.as_slice(), part.expected.users), (&[1, 5, 9][..], 3));
    assert!(part.joins.iter().all(|join| whole.joins.contains(join)));
}

#[test]
fn the_expected_load_grows_with_the_crowd() {
    let plan = plan("[crowd]\nsize = 100", "60s");
    // 1 Mbit/s video + 50/1150 overhead, 48 kbit/s audio + 50 packets of 50 bytes.
    let one = 1.0 * (1.0 + 50.0 / 1150.0) + 0.048 + 0.020;
    assert!((plan.expected.server_out_mbit_per_s - 100.0 * one).abs() < 1e-6);
    assert!(plan.expected.server_in_mbit_per_s < 0.05 * plan.expected.server_out_mbit_per_s);
    assert_eq!(plan.needs, Needs { file_descriptors: 264, ports: 100 });
    assert!(!plan.expected.assumed);
    assert!(plan.share(Share::new(1, 2).unwrap()).expected.users == 50);
}

#[test]
fn local_addresses_are_dealt_in_turn_over_all_ranges() {
    let plan =
        plan("[crowd]\nsize = 5\nsource_ips = [\"127.0.0.2-127.0.0.3\", \"127.0.0.9\"]", "60s");
    let dealt: Vec<String> =
        plan.joins.iter().filter_map(|join| join.source_ip).map(|ip| ip.to_string()).collect();
    assert_eq!(dealt, ["127.0.0.2", "127.0.0.3", "127.0.0.9", "127.0.0.2", "127.0.0.3"]);
}
