use crate::prices::{ComputePrices, EgressPrices, EgressTier, PriceTable};

const HEAD: &str = "provider = \"p\"\nas_of = \"2026-11\"\ncurrency = \"EUR\"\n";
const MACHINE: &str = "[[machine]]\nname = \"m\"\nvcpus = 8\nmemory_gb = 16\nnetwork_gbit_per_s = 10\nper_hour = 0.34\n";
const REST: &str =
    "[egress]\nper_gb = 0.09\n[storage]\nper_gb_month = 0.02\n[requests]\nper_million = 0.4\n";

fn file() -> String {
    [HEAD, MACHINE, REST].concat()
}

#[test]
fn a_table_is_read_with_its_defaults() {
    let table = PriceTable::parse(&file()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (table.as_of.as_str(), table.currency.as_str(), &table.note),
        ("2026-11", "EUR", &None)
    );
    let ComputePrices::Machines(machines) = &table.compute else { panic!("{table:?}") };
    let machine = &machines[0];
    assert_eq!((machine.vcpus, machine.cpu_speed, machine.per_hour), (8.0, 1.0, 0.34));
    assert_eq!((table.egress.free_gb, table.egress.price_of(100.0)), (0.0, 9.0));
    assert_eq!((table.storage_per_gb_month, table.requests_per_million), (0.02, 0.4));
    let amounts = [HEAD, "[compute]\nvcpu_hour = 0.04\nmemory_gb_hour = 0\n", REST].concat();
    let table = PriceTable::parse(&amounts).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(table.compute, ComputePrices::Amounts { vcpu_hour: 0.04, memory_gb_hour: 0.0 });
}

#[test]
fn each_amount_is_charged_by_its_tier() {
    let tier = |up_to_gb, per_gb| EgressTier { up_to_gb, per_gb };
    let egress = EgressPrices {
        free_gb: 100.0,
        tiers: vec![tier(Some(1_000.0), 0.1), tier(Some(10_000.0), 0.08), tier(None, 0.05)],
    };
    for (gb, expect) in [
        (0.0, 0.0),
        (100.0, 0.0),
        (200.0, 10.0),
        (1_000.0, 90.0),
        (2_000.0, 170.0),
        (10_000.0, 810.0),
        (20_000.0, 1_310.0),
    ] {
        assert!((egress.price_of(gb) - expect).abs() < 1e-9, "{gb} GB: {}", egress.price_of(gb));
    }
    let mut before = 0.0;
    for gb in (0..30_000).step_by(37).map(f64::from) {
        assert!(egress.price_of(gb) >= before, "{gb} GB cost less than fewer");
        before = egress.price_of(gb);
    }
}

#[test]
fn prices_are_of_a_month_or_of_a_day() {
    for date in ["2026-11", "2026-11-24", "2028-02-29"] {
        let text = file().replace("\"2026-11\"", &format!("\"{date}\""));
        let as_of = PriceTable::parse(&text).ok().map(|table| table.as_of);
        assert_eq!(as_of.as_deref(), Some(date));
    }
}

#[test]
fn what_stands_in_place_of_a_date_is_told_without_its_secrets() {
    let text = file().replace("\"2026-11\"", "\"http://me:hunter2@h/?token=hunter2\"");
    let error = PriceTable::parse(&text).expect_err("no date").to_string();
    assert!(error.contains("http://…@h/?token=…") && !error.contains("hunter2"), "{error}");
}

/// Each wrong line, what is said about it, and the line.
#[test]
fn errors_name_the_line_and_the_fix() {
    let with = |old: &str, new: &str| file().replace(old, new);
    for (text, expect, line) in [
        (with("provider = \"p\"\n", ""), "`provider` is missing", None),
        (with("as_of = \"2026-11\"\n", ""), "write as_of = \"2026-11\"", None),
        (with("\"2026-11\"", "\"last year\""), "`as_of` is not a date", Some(2)),
        (with("\"2026-11\"", "\"2026-13\""), "`as_of` is not a date", Some(2)),
        (with("\"2026-11\"", "\"2026-11-0\""), "`as_of` is not a date", Some(2)),
        (with("\"2026-11\"", "\"2026-02-31\""), "`as_of` is not a date", Some(2)),
        (with("\"2026-11\"", "\"2026-02-29\""), "`as_of` is not a date", Some(2)),
        (with("\"2026-11\"", "2026-11-24"), "`as_of` is not text", Some(2)),
        (with("\"EUR\"", "\"\""), "not one line of 1 to 8 characters", Some(3)),
        (with(MACHINE, ""), "there is no price of compute", None),
        (
            with(MACHINE, &[MACHINE, "[compute]\nvcpu_hour = 1\n"].concat()),
            "either by [[machine]]",
            Some(4),
        ),
        (with("vcpus = 8", "vcpu = 8"), "did you mean `vcpus`?", Some(6)),
        (with("vcpus = 8\n", ""), "`machine.0.vcpus` is missing", Some(4)),
        (with("vcpus = 8", "vcpus = 0"), "`machine.0.vcpus` is 0", Some(6)),
        (with("per_hour = 0.34", "per_hour = -0.34"), "`machine.0.per_hour` is negative", Some(9)),
        (with("per_hour = 0.34", "per_hour = \"0.34\""), "is not a number", Some(9)),
        (with("per_hour = 0.34", "per_hour = inf"), "is above", Some(9)),
        (with("per_hour = 0.34", "per_hour = nan"), "is not a number", Some(9)),
        (with(MACHINE, &[MACHINE, MACHINE].concat()), "there are two machines `m`", Some(11)),
        (with(MACHINE, "machine = []\n"), "not a list of 1 to 256", Some(4)),
        (with("[egress]\nper_gb = 0.09\n", ""), "there is no price of egress", None),
        (with("per_gb = 0.09\n", ""), "`egress` has no price", Some(10)),
        (with("per_gb = 0.09", "per_gb = 0.09\ntiers = []"), "either one price or tiers", Some(11)),
        (with("per_gb = 0.09", "tiers = [{ per_gb = 1, up_to_gb = 5 }]"), "has an end", Some(11)),
        (
            with("per_gb = 0.09", "tiers = [{ per_gb = 1 }, { per_gb = 2 }]"),
            "has no `up_to_gb`",
            Some(11),
        ),
        (
            with(
                "per_gb = 0.09",
                "free_gb = 9\ntiers = [{ per_gb = 1, up_to_gb = 9 }, { per_gb = 2 }]",
            ),
            "tiers rise",
            Some(12),
        ),
        (with("[storage]\nper_gb_month = 0.02\n", ""), "there is no price of storage", None),
        (
            with("[requests]\nper_million = 0.4\n", ""),
            "write [requests] with per_million = 0.5",
            None,
        ),
        (with("per_million = 0.4", "per_milion = 0.4"), "did you mean `per_million`?", Some(15)),
        ("[[[".to_owned(), "the file is TOML", Some(1)),
    ] {
        let error = PriceTable::parse(&text).expect_err(&text);
        let said = error.to_string();
        assert!(said.contains(expect), "{expect}: {said}\n{text}");
        assert!(
            line.is_none_or(|line| said.contains(&format!("line {line},"))),
            "line {line:?}: {said}"
        );
    }
}

#[test]
fn all_errors_are_found_at_once() {
    let error = PriceTable::parse("provider = 1\n[egress]\nper_gb = -1\nfoo = 2\n").unwrap_err();
    assert!(error.diagnostics.len() >= 6, "{error}");
}

#[test]
fn the_examples_are_read_and_say_that_they_are_no_offers() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/prices");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("examples") {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let table =
            PriceTable::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let note = table.note.unwrap_or_default();
        assert!(
            note.contains("illustration") && note.contains("check before use"),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count >= 3);
}
