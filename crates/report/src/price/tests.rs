use std::time::Duration;

use throng_analysis::sizing::SizedResource;
use throng_scenario::prices::{EgressPrices, EgressTier};

use super::*;
use crate::server::tests::searched;
use crate::{example, html, summarise};

fn machine(name: &str, vcpus: f64, per_hour: f64) -> MachinePrice {
    MachinePrice {
        name: name.into(),
        vcpus,
        cpu_speed: 1.0,
        memory_gb: 16.0,
        network_gbit_per_s: 10.0,
        per_hour,
    }
}

fn prices(compute: ComputePrices) -> PriceTable {
    PriceTable {
        provider: "a cloud".into(),
        as_of: "2026-11".into(),
        note: None,
        currency: "EUR".into(),
        compute,
        egress: EgressPrices {
            free_gb: 0.0,
            tiers: vec![EgressTier { up_to_gb: None, per_gb: 0.1 }],
        },
        storage_per_gb_month: 0.02,
        requests_per_million: 1.0,
    }
}

pub(super) fn by_machine() -> PriceTable {
    prices(ComputePrices::Machines(vec![machine("small", 4.0, 0.2), machine("large", 16.0, 0.7)]))
}

fn request(viewers: u32) -> PriceRequest {
    PriceRequest { viewers, hours: 2.0, ..PriceRequest::default() }
}

fn report(run: &RunData, request: &PriceRequest, prices: Option<&PriceTable>) -> PriceReport {
    PriceReport::of(run, &summarise(run, &[], Duration::ZERO), request, prices)
}

fn need(report: &PriceReport, resource: SizedResource) -> f64 {
    report.size.needs.iter().find(|need| need.resource == resource).expect("a need").used.value
}

fn term(report: &PriceReport, kind: CostKind) -> &CostTerm {
    report
        .cost
        .as_ref()
        .and_then(|cost| cost.terms.iter().find(|term| term.kind == kind))
        .expect("a term")
}

#[test]
fn the_planted_demand_of_a_search_gives_its_size() {
    // Each user costs 2.68 % of a core, 600 kB and 140 kB/s.
    let report = report(&searched(), &request(300), None);
    for (resource, expect) in [
        (SizedResource::Cpu, 300.0 * 0.0268),
        (SizedResource::NicSent, 300.0 * 1.4e5),
        (SizedResource::Memory, 2.2e8),
    ] {
        let got = need(&report, resource);
        assert!((got / expect - 1.0).abs() < 0.08, "{resource:?}: {got}, not {expect}");
    }
    // The thread is full: the search's own limit, or its thread, bounds a server.
    let like = report.size.like_measured.as_ref().expect("a bound");
    assert!((9..=12).contains(&like.servers), "{like:?}");
    assert!(report.headline.starts_with("300 viewers need"), "{}", report.headline);
    assert!(report.cost.is_none() && report.machines.is_empty() && !report.has_no_size());
}

#[test]
fn the_answer_the_table_of_sizes_and_the_price_of_a_run_agree() {
    let run = searched();
    let summary = summarise(&run, &[], Duration::ZERO);
    let found = summary.bottleneck.as_ref().expect("a cause");
    let then = found.prediction.as_ref().expect("a prediction");
    assert_eq!(then.next_resource, "CPU of the host", "{then:?}");
    let asked = PriceRequest { target_utilisation: 1.0, ..request(then.users as u32) };
    let report = PriceReport::of(&run, &summary, &asked, None);
    // More threads are given; the four cores, of which 95 % are usable, are not. The processes use
    // less than the host.
    let cores = need(&report, SizedResource::Cpu);
    assert!(cores <= 0.95 * 4.0, "{cores} cores of 4, {then:?}");
    let page = section(&summary);
    for need in &report.size.needs {
        let Some(users) = need.users_per else { continue };
        let words = text::users_per(&users, &need.per);
        assert!(page.contains(&words), "{words}\n{page}");
    }
    // Neither the packets that the card can send nor the memory of the host were recorded.
    assert_eq!(then.unknown, ["packets sent by eth0", "memory of janus"]);
    let words = crate::text::summary(&summary);
    assert!(
        words.contains("; not known: the limits of packets sent by eth0 and memory of janus"),
        "{words}"
    );
}

#[test]
fn the_cost_is_the_sum_of_its_parts_and_names_the_largest() {
    let prices = by_machine();
    let with_storage = PriceRequest { storage_gb: 50.0, ..request(300) };
    let report = report(&searched(), &with_storage, Some(&prices));
    let cost = report.cost.as_ref().expect("a cost");
    // 122,310 B/s … of the series: 120 packets of 1,110 B and 12,000 B of sound.
    let gb = (120.0 * 1_110.0 + 12_000.0) * 300.0 * 7_200.0 / 1e9;
    let egress = term(&report, CostKind::Egress).amount.unwrap();
    assert!((egress.value / (gb * 0.1) - 1.0).abs() < 0.01, "{egress:?} for {gb} GB");
    let compute = term(&report, CostKind::Compute).amount.unwrap();
    let plan =
        report.machines.iter().find(|offer| Some(&offer.machine) == cost.machine.as_ref()).unwrap();
    let count = plan.plan.as_ref().unwrap().count as f64;
    assert!((compute.value - count * plan.per_hour * 2.0).abs() < 1e-9);
    assert!((term(&report, CostKind::Storage).amount.unwrap().value - 1.0).abs() < 1e-9);
    let sum: f64 =
        cost.terms.iter().filter_map(|term| term.amount).map(|amount| amount.value).sum();
    assert!(
        (cost.total.value - sum).abs() < 1e-9 && (cost.per_hour.value * 2.0 - sum).abs() < 1e-9
    );
    assert!((cost.per_1000_viewers.value * 0.3 - sum).abs() < 1e-9);
    assert!((cost.per_1000_viewer_hours.value * 0.6 - sum).abs() < 1e-9);
    assert_eq!(cost.dominant, Some(CostKind::Egress));
    assert!(
        cost.total.low <= cost.total.value
            && cost.total.value <= cost.total.high
            && cost.without.is_empty()
    );
    let words = text::summary(&report);
    for part in [
        "300 viewers for 2 h cost",
        "of it egress",
        "a cloud, as of 2026-11",
        "cheapest",
        "1,000 viewer-hours",
    ] {
        assert!(words.contains(part), "{part}\n{words}");
    }
    assert!(!words.contains("NaN") && !words.contains("inf"), "{words}");
}

#[test]
fn hours_are_said_as_they_were_asked_for() {
    for (hours, expect) in [
        (2.0, " for 2 h cost"),
        (0.5, " for 0.50 h cost"),
        (27.25, " for 27.25 h cost"),
        (100.5, " for 100.50 h cost"),
        (1_000.25, " for 1,000.25 h cost"),
    ] {
        let request = PriceRequest { hours, ..request(300) };
        let headline = report(&searched(), &request, Some(&by_machine())).headline;
        assert!(headline.contains(expect), "{headline}");
    }
}

#[test]
fn more_viewers_never_cost_less_and_never_leave_the_interval() {
    for prices in
        [by_machine(), prices(ComputePrices::Amounts { vcpu_hour: 0.04, memory_gb_hour: 0.005 })]
    {
        let (run, mut before) = (searched(), 0.0);
        let summary = summarise(&run, &[], Duration::ZERO);
        for viewers in [1, 10, 40, 100, 400, 1_000, 10_000, 1_000_000] {
            let report = PriceReport::of(&run, &summary, &request(viewers), Some(&prices));
            let total = report.cost.as_ref().unwrap().total;
            assert!(total.value > before, "{viewers}: {total:?} after {before}");
            assert!(total.low <= total.value && total.value <= total.high, "{viewers}: {total:?}");
            before = total.value;
        }
    }
}

#[test]
fn a_crowd_far_beyond_the_measurement_is_flagged() {
    let report = report(&searched(), &request(10_000), Some(&by_machine()));
    let cpu = report.size.needs.iter().find(|need| need.resource == SizedResource::Cpu).unwrap();
    assert!(
        cpu.extrapolation.order_of_magnitude_only && cpu.extrapolation.factor > 200.0,
        "{cpu:?}"
    );
    let words = text::summary(&report);
    assert!(words.contains("order of magnitude only, extrapolated ×250"), "{words}");
    // Machines hold no more than can be predicted.
    for offer in &report.machines {
        let plan = offer.plan.as_ref().unwrap();
        assert!(plan.extrapolated <= 10.0 && plan.users_each <= 400.0, "{plan:?}");
    }
}

#[test]
fn a_server_that_was_not_watched_is_priced_without_its_compute() {
    let report = report(&example::healthy(50, 60), &request(1_000), Some(&by_machine()));
    let cost = report.cost.as_ref().unwrap();
    assert_eq!(cost.without, [CostKind::Compute]);
    assert!(report.has_no_size() && cost.total.value > 0.0);
    assert!(report.headline.contains("without compute"), "{}", report.headline);
    assert!(report.notes.iter().any(|note| note.contains("was not watched")), "{:?}", report.notes);
    let nothing = self::report(&RunData::default(), &request(1_000), Some(&by_machine()));
    assert_eq!(nothing.cost.unwrap().without, [CostKind::Compute, CostKind::Egress]);
}

#[test]
fn requests_are_charged_where_players_sent_them() {
    let report = report(&crate::playback::tests::players(20), &request(1_000), Some(&by_machine()));
    let traffic = report.traffic.as_ref().expect("traffic");
    let per_second = traffic.requests.expect("requests").per_second.value;
    let amount = term(&report, CostKind::Requests).amount.unwrap().value;
    assert!(
        (amount - per_second * 1_000.0 * 7_200.0 / 1e6).abs() < 1e-9 && amount > 0.0,
        "{amount}"
    );
}

#[test]
fn json_reads_back_and_hostile_names_stay_text() {
    let hostile = "\u{1b}[2J<script>\n";
    let mut run = searched();
    run.info.target = hostile.into();
    for series in &mut run.host.series {
        series.labels.values_mut().for_each(|label| label.push_str(hostile));
    }
    let mut prices = by_machine();
    prices.provider = hostile.into();
    let report = report(&run, &request(100), Some(&prices));
    let json = report.to_json();
    assert!(!json.contains('\u{1b}'));
    let back: PriceReport = serde_json::from_str(&json).unwrap();
    assert_eq!(back.to_json(), json);
    assert!(!text::summary(&report).contains('\u{1b}'));
    let page = html::render(&run, &summarise(&run, &[], Duration::ZERO));
    assert!(page.contains(">Size</a></h2>") && page.contains(" per core ("));
    assert!(!page.contains("<script>\n\u{fffd}") && !page.contains("[2J<script>"));
    let without = html::render(
        &example::healthy(5, 10),
        &summarise(&example::healthy(5, 10), &[], Duration::ZERO),
    );
    assert!(!without.contains(">Size</a></h2>"));
}

#[test]
fn a_url_in_the_note_of_a_price_file_is_told_without_its_secrets() {
    let url = "http://me:hunter2@h/prices?token=hunter2";
    let mut prices = by_machine();
    prices.provider = format!("p, {url}");
    prices.note = Some(format!("as {url} says"));
    let report = report(&searched(), &request(100), Some(&prices));
    for told in [report.to_json(), text::summary(&report)] {
        assert!(told.contains("http://…@h/prices?token=…") && !told.contains("hunter2"), "{told}");
    }
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_code() {
    let code = super::json_schema();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/price.schema.json");
    if std::env::var_os("THRONG_WRITE_DOCS").is_some() {
        std::fs::write(file, format!("{code:#}\n")).unwrap();
    }
    let documented: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(
        documented, code,
        "write it anew: THRONG_WRITE_DOCS=1 cargo test -p throng-report schema"
    );
}
