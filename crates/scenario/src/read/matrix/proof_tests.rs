use std::time::Duration;

use throng_observation::Relief;

use crate::matrix::{
    Matrix, Measure, Order, Pair, Places, PlannedRun, SearchKeys, Shrink, ShrunkResource,
};

const WORKERS: &str = include_str!("../../../../../fuzz/seeds/proof/workers.toml");
const SHRINK: &str = include_str!("../../../../../fuzz/seeds/proof/shrink.toml");

fn workers() -> Matrix {
    Matrix::parse_proof(WORKERS, None).unwrap_or_else(|error| panic!("{error}"))
}

fn places() -> Places {
    Places { dir: "/runs/7".into(), base: "/study".into() }
}

#[test]
fn a_proof_is_a_matrix_of_one_factor() {
    let proof = workers();
    assert_eq!((proof.order, proof.pairs), (Order::Abba, Some(6)));
    let cells = proof.cells();
    let names: Vec<String> = cells.iter().map(|cell| proof.describe(cell)).collect();
    assert_eq!(names, ["variant=one", "variant=four", "variant=placebo"]);
    let cpu = Relief::of_resource("cpu");
    assert_eq!((proof.relieved(0, 0, 1), proof.relieved(0, 0, 2)), (Some(&cpu), None));
    assert_eq!(proof.factors[0].levels[1].more, Some(4.0));
    let server = |cell: usize| proof.cell(&cells[cell], &places()).server;
    assert_eq!(server(0).command.unwrap()[3], "1");
    assert_eq!(server(1).command.unwrap()[3], "4");
    assert_eq!(server(2).env, [("VARIANT".to_owned(), "placebo".to_owned())]);
    assert_eq!(server(0).nofile, Some(4096));
}

/// A table names what a finding names: a thread, its setting, the finding itself.
#[test]
fn a_variant_may_relieve_a_thread_a_setting_or_a_finding() {
    let relieves = |table: &str| {
        let text = format!(
            "scenario = \"a.toml\"\nhold = \"20s\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nrelieves = {table}\n"
        );
        let proof = Matrix::parse_proof(&text, None).unwrap_or_else(|error| panic!("{error}"));
        proof.relieved(0, 0, 1).cloned().unwrap()
    };
    let named = |name: &str| Some(name.to_owned());
    let cpu = || Relief::of_resource("cpu");
    assert_eq!(
        relieves("{ thread = \"SW-WebRTC*\", setting = \"StreamWorkerCount\" }"),
        Relief { thread: named("SW-WebRTC*"), setting: named("StreamWorkerCount"), ..cpu() }
    );
    assert_eq!(relieves("{ thread = \"mp *\" }"), Relief { thread: named("mp *"), ..cpu() });
    assert_eq!(
        relieves("{ setting = \"worker_connections\", resource = \"sockets\" }"),
        Relief { setting: named("worker_connections"), ..Relief::of_resource("sockets") }
    );
    assert_eq!(
        relieves("{ finding = \"configured_ceiling\" }"),
        Relief { finding: named("configured_ceiling"), ..Relief::default() }
    );
}

#[test]
fn every_block_has_each_side_twice_and_either_side_begins() {
    let proof = workers();
    let blocks = proof.blocks();
    assert_eq!((blocks.len(), proof.runs().len()), (6, 24));
    for block in &blocks {
        let cells = block.runs.clone().map(|run| run.cell);
        let [a, b, c, d] = cells;
        assert!(
            a == d && b == c && a != b && a.min(b) == 0 && a.max(b) == block.variant,
            "{cells:?}"
        );
    }
    for variant in [1, 2] {
        let first: Vec<usize> = blocks
            .iter()
            .filter(|block| block.variant == variant)
            .map(|block| block.runs[0].cell)
            .collect();
        assert!(first == [0, variant, 0] || first == [variant, 0, variant], "{first:?}");
    }
    // Every run is a folder of its own.
    let mut runs: Vec<(usize, u32)> =
        proof.runs().iter().map(|run| (run.cell, run.repeat)).collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 24);
    for cell in 0..3 {
        let count = runs.iter().filter(|run| run.0 == cell).count();
        assert_eq!(count, proof.repeats_of(cell) as usize, "cell {cell}");
    }
    assert_eq!(proof.runs(), workers().runs(), "the same seed, the same order");
}

#[test]
fn a_proof_is_looked_at_after_each_round_and_its_beginning_does_not_depend_on_its_length() {
    let of = |pairs: u32| Matrix { pairs: Some(pairs), ..workers() };
    for (pairs, expect) in [(2, &[2][..]), (6, &[2, 4, 6]), (22, &[4, 8, 12, 16, 20, 22])] {
        assert_eq!(of(pairs).looks(), expect);
    }
    assert_eq!(of(100).looks().len(), 10);
    // A proof that ends after two pairs is the beginning of a longer one.
    let (short, long) = (of(2).runs(), of(6).runs());
    assert_eq!(short[..], long[..short.len()]);
}

#[test]
fn a_lost_pair_is_made_once_more_in_the_same_order_and_not_for_ever() {
    let proof = workers();
    let first = &proof.blocks()[0];
    let lost = |pair: &Pair| pair.runs == first.runs[2..];
    let again = proof.repeated(&lost);
    assert_eq!(again.len(), 1, "{again:?}");
    assert_eq!(again[0].variant, first.variant);
    let cells = |runs: &[PlannedRun]| runs.iter().map(|run| run.cell).collect::<Vec<_>>();
    assert_eq!(cells(&again[0].runs), cells(&first.runs[2..]), "the same side begins");
    for run in &again[0].runs {
        assert_eq!(run.repeat, proof.repeats_of(run.cell) + 1, "a folder of its own");
    }
    assert!(proof.repeated(&|_| false).is_empty());
    // What is lost every time ends with as many pairs as were planned, of each variant.
    let all = proof.repeated(&|_| true);
    assert_eq!(all.len(), 2 * 6);
    let mut runs: Vec<(usize, u32)> =
        all.iter().flat_map(|pair| &pair.runs).map(|run| (run.cell, run.repeat)).collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs.len(), 2 * 12);
    // Of a variant alone.
    let of_placebo = proof.repeated(&|pair| pair.variant == 2);
    assert!(of_placebo.len() == 6 && of_placebo.iter().all(|pair| pair.variant == 2));
}

#[test]
fn a_shrink_takes_the_place_of_the_variants() {
    let proof = Matrix::parse_proof(SHRINK, None).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<&str> =
        proof.factors[0].levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["baseline", "network-at-0.7", "nofile-at-0.7"]);
    let shrinks = |cell: usize| proof.cell(&proof.cells()[cell], &places()).shrink;
    let line = || ShrunkResource::Network { interface: "lo".into(), rate_bps: 20e6 };
    let whole = Shrink { resource: line(), to: 1.0, is_placebo: false };
    assert_eq!(
        shrinks(0),
        std::slice::from_ref(&whole),
        "the baseline has the filter, at the full rate"
    );
    assert_eq!(shrinks(1), [Shrink { resource: line(), to: 0.7, is_placebo: false }]);
    let nofile = Shrink { resource: ShrunkResource::Nofile, to: 0.7, is_placebo: true };
    assert_eq!(shrinks(2), [whole, nofile]);
}

#[test]
fn the_flag_goes_before_the_file() {
    let proof =
        Matrix::parse_proof(WORKERS, Some("nofile=0.9")).unwrap_or_else(|error| panic!("{error}"));
    let levels = &proof.factors[0].levels;
    let names: Vec<&str> = levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["one", "nofile-at-0.9", "cpu-at-0.9"], "the first variant is the baseline");
    let proof = Matrix::parse_proof(SHRINK, Some("cpu")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(proof.factors[0].levels[1].shrink[0].resource, ShrunkResource::Cpu);
    assert!(
        (proof.factors[0].levels[1].shrink[0].to - 0.7).abs() < 1e-9,
        "the share is that of the file"
    );
}

/// A file that has neither `hold` nor `[find]`, or both, leaves the choice to a search of the
/// baseline; one that relieves nothing searches.
#[test]
fn what_is_measured_is_chosen_where_the_file_does_not_say_it() {
    let of = |keys: &str, more: &str| {
        let text = format!(
            "scenario = \"a.toml\"\n{keys}[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n{more}"
        );
        let proof = Matrix::parse_proof(&text, None).unwrap_or_else(|error| panic!("{error}"));
        (proof.measure.clone(), proof.first_search(), proof.least_more())
    };
    let seconds = Duration::from_secs;
    let usual = SearchKeys { budget: seconds(60), start: None, ceiling: None };
    let first = Some(PlannedRun { cell: 0, repeat: 0 });
    let relieves = "relieves = \"cpu\"\n";
    let auto = Measure::Auto { hold: seconds(10), search: usual };
    assert_eq!(of("", relieves), (auto, first.clone(), None));
    assert_eq!(of("", "relieves = \"cpu\"\nmore = 2\n").2, Some(2.0));
    let search = SearchKeys { start: Some(3), ..usual };
    let auto = Measure::Auto { hold: seconds(5), search };
    let both = "hold = \"5s\"\nfind = { budget = \"1m\", start = 3 }\n";
    assert_eq!(of(both, relieves), (auto, first, None));
    assert_eq!(of("hold = \"5s\"\n", relieves), (Measure::Hold(seconds(5)), None, None));
    assert_eq!(of("", ""), (Measure::Find(usual), None, None));
}

/// Each wrong file or flag, and what is said about it.
#[test]
fn errors_name_the_line_and_the_fix() {
    let head = "scenario = \"a.toml\"\nhold = \"20s\"\n";
    let two = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    for (text, shrink, expect) in [
        (head.to_owned(), None, "there is nothing to compare"),
        (format!("{head}[[variant]]\nname = \"a\"\n"), None, "nothing to compare it with"),
        (format!("{head}{two}[find]\nstart = 3\n"), None, "`find.budget` is missing"),
        (format!("{head}pairs = 3\n{two}"), None, "write 4: two pairs are a block"),
        (format!("{head}busy_difference = 25\n{two}"), None, "write 0.25 for a quarter"),
        (format!("{head}pairs = 0\n{two}"), None, "a whole number from 2 to 100"),
        (format!("{head}repeats = 3\n{two}"), None, "unknown key `repeats`"),
        (
            format!("{head}{two}[[factor]]\nname = \"x\"\nlevels = [1]\n"),
            None,
            "unknown key `factor`",
        ),
        (format!("{head}{two}value = 1\n"), None, "unknown key `value`"),
        (format!("{head}{two}more = 2\n"), None, "how much, but not of what"),
        (format!("{head}{two}relieves = \"cpu\"\nmore = 0.5\n"), None, "must be above 1"),
        (format!("{head}{two}relieves = \"cpus\"\n"), None, "did you mean \"cpu\"?"),
        (
            format!("{head}{two}relieves = {{ resource = \"cpu\" }}\n"),
            None,
            "names no thread, setting or finding",
        ),
        (format!("{head}{two}relieves = {{ tread = \"a\" }}\n"), None, "did you mean `thread`?"),
        (
            format!("{head}{two}relieves = {{ thread = \"*\" }}\n"),
            None,
            "has a name without letters",
        ),
        (
            format!("{head}{two}relieves = {{ thread = \"SW-WebRTCPublisher*\" }}\n"),
            None,
            "longer than the 15 bytes",
        ),
        (
            format!("{head}[[variant]]\nname = \"a\"\nrelieves = \"cpu\"\n"),
            None,
            "the baseline relieves nothing",
        ),
        (format!("{head}{two}[[variant]]\nname = \"a\"\n"), None, "must be unique"),
        (format!("{head}{two}variables = {{ x = 1 }}\n"), None, "has no variable `x`"),
        (
            format!("{head}{two}server = {{ cwd = \"{{{{varient}}}}\" }}\n"),
            None,
            "did you mean `{{variant}}`?",
        ),
        (
            format!("{head}{two}[shrink]\nresource = \"cpu\"\n"),
            None,
            "shrinks a resource or compares",
        ),
        (format!("{head}[shrink]\nto = 0.8\n"), None, "`shrink.resource` is missing"),
        (
            format!("{head}[shrink]\nresource = \"cpu\"\nto = 1.2\n"),
            None,
            "is shrunk to 0.1 to 0.95",
        ),
        (
            format!("{head}[shrink]\nresource = \"cpu\"\nplacebo = \"cpu\"\n"),
            None,
            "the placebo is the accused",
        ),
        (
            format!("{head}[shrink]\nresource = \"network\"\n"),
            None,
            "only a named interface is touched",
        ),
        (
            format!(
                "{head}[shrink]\nresource = \"network\"\ninterface = \"-x\"\nrate = \"1Mbit/s\"\n"
            ),
            None,
            "is no name of an interface",
        ),
        (head.to_owned(), Some("ram"), "--shrink ram: no resource that can be shrunk"),
        (head.to_owned(), Some("cpu=much"), "write --shrink cpu=0.8"),
        (head.to_owned(), Some("cpu=0.99"), "is shrunk to 0.1 to 0.95"),
        (head.to_owned(), Some("network"), "only a named interface is touched"),
    ] {
        let error = match Matrix::parse_proof(&text, shrink) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("no error in\n{text}"),
        };
        assert!(error.contains(expect), "{expect}\n--- is not in\n{error}\n--- of\n{text}");
    }
    assert!(Matrix::parse_proof(head, Some("cpu")).is_ok(), "a shrink needs no variant");
}
