//! The size and the price of a crowd in the terminal.

use std::fmt::Write as _;

use throng_analysis::sizing::{Bend, Estimate, Extrapolation, MachinePlan, ResourceNeed, UsersPer};
use throng_observation::units::{Unit, grouped, noun, number, percent};
use throng_observation::untrusted;

use super::cost::Cost;
use super::{ChatSize, MachineOffer, PriceReport, chat};
use crate::columns::{columns, said};

/// The answer in one sentence.
pub(super) fn headline(report: &PriceReport) -> String {
    if let Some(problem) = report.chat.as_ref().and_then(ChatSize::problem) {
        return problem;
    }
    let viewers = format!("{} viewers", grouped(f64::from(report.viewers), 0));
    let (Some(cost), Some(prices)) = (&report.cost, &report.prices) else {
        return match &report.size.like_measured {
            Some(like) => format!(
                "{viewers} need {} like the measured one ({}), used to {}: {} decides",
                servers(like.servers),
                range(like.servers_low, like.servers_high),
                percent(report.size.target_utilisation),
                like.decided_by
            ),
            None if report.size.needs.is_empty() => format!("What {viewers} need is not known"),
            None => format!("What {viewers} need, from the loads that passed"),
        };
    };
    let hours = hours(report.hours);
    let without = match cost.without.as_slice() {
        [] => String::new(),
        kinds => {
            format!(
                " without {}",
                kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" and ")
            )
        }
    };
    let dominant = cost.dominant.map_or_else(String::new, |kind| {
        let share = cost.terms.iter().find(|term| term.kind == kind).and_then(|term| term.share);
        format!("; {} of it {}", percent(share.unwrap_or(0.0)), kind.name())
    });
    format!(
        "{viewers} for {hours} cost {}{without}{dominant}",
        money(cost.total, cost.is_open_above, &prices.currency)
    )
}

/// Hours as they were asked for: the cost is of all of `100.50 h`.
fn hours(hours: f64) -> String {
    let is_whole = hours.fract() == 0.0;
    let shown = if is_whole || hours < 1.0 { number(hours) } else { grouped(hours, 2) };
    format!("{shown} h")
}

fn servers(count: u64) -> String {
    format!("{} {}", grouped(count as f64, 0), noun(count, "servers"))
}

fn range(low: u64, high: Option<u64>) -> String {
    match high {
        Some(high) if high == low => format!("{low}"),
        Some(high) => format!("{low}–{high}"),
        None => format!("at least {low}"),
    }
}

/// The whole answer. Plain text, newline at the end.
#[must_use]
pub fn summary(report: &PriceReport) -> String {
    let mut out = format!("{}\n", untrusted::line(&report.headline));
    let _ = writeln!(
        out,
        "  run   {} ({})",
        untrusted::name(&report.run_headline),
        untrusted::line(&report.target)
    );
    if let Some(prices) = &report.prices {
        let note = prices.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
        let words = format!("{}, as of {}{note}", prices.provider, prices.as_of);
        let _ = writeln!(out, "  prices  {}", untrusted::line(&words));
    }
    if let (Some(cost), Some(prices)) = (&report.cost, &report.prices) {
        cost_lines(&mut out, cost, &prices.currency);
    }
    need_lines(&mut out, report);
    if let Some(size) = &report.chat {
        chat::lines(&mut out, size, report.prices.as_ref().map(|prices| prices.currency.as_str()));
    }
    if !report.machines.is_empty() {
        machine_lines(&mut out, report);
    }
    out.push('\n');
    said(&mut out, "  note: ", &report.notes);
    out.extend(report.method.iter().map(|sentence| format!("  {sentence}\n")));
    out
}

fn cost_lines(out: &mut String, cost: &Cost, currency: &str) {
    out.push_str("\nCost of the event\n");
    let mut rows: Vec<Vec<String>> = Vec::new();
    for term in &cost.terms {
        let amount = match term.amount {
            Some(amount) => money(amount, term.is_open_above, currency),
            None => "not known".into(),
        };
        rows.push(vec![
            term.kind.name().into(),
            amount,
            term.share.map_or_else(String::new, percent),
            term.detail.clone(),
        ]);
    }
    let sum =
        |name: &str, amount| vec![name.to_owned(), money(amount, cost.is_open_above, currency)];
    rows.push(sum("total", cost.total));
    rows.push(sum("an hour", cost.per_hour));
    rows.push(sum("1,000 viewers", cost.per_1000_viewers));
    rows.push(sum("1,000 viewer-hours", cost.per_1000_viewer_hours));
    table(out, &rows);
}

fn need_lines(out: &mut String, report: &PriceReport) {
    let size = &report.size;
    if let Some(like) = &size.like_measured {
        let each = like.users_each;
        let words = format!(
            "{} like the measured one, as it is configured: {} viewers each ({}–{}), bounded by {}",
            servers(like.servers),
            grouped(each.value.floor(), 0),
            grouped(each.low.floor(), 0),
            grouped(each.high.floor(), 0),
            like.decided_by
        );
        let _ = writeln!(out, "\nServers\n  {}", untrusted::line(&words));
    }
    if size.needs.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nOn one server, used to {} (measured up to {} viewers)",
        percent(size.target_utilisation),
        grouped(size.users_measured_max.unwrap_or(0.0).floor(), 0)
    );
    let mut rows = vec![
        ["resource", "provide", "viewers use", "one more serves", "largest part", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(size.needs.iter().map(need_row));
    table(out, &rows);
}

fn need_row(need: &ResourceNeed) -> Vec<String> {
    let is_rough = need.extrapolation.order_of_magnitude_only;
    let share = if need.dominant_share < 0.995 {
        format!(" ({})", percent(need.dominant_share))
    } else {
        String::new()
    };
    let unit = need.resource.unit();
    vec![
        need.resource.name().into(),
        amount(need.provide.value, unit, is_rough),
        interval(need.used, unit, is_rough),
        need.users_per
            .map_or_else(|| "growth within noise".into(), |users| users_per(&users, &need.per)),
        format!("{}{share}", need.dominant),
        remark(&need.extrapolation, need.bends),
    ]
}

/// How sure a figure is.
fn remark(extrapolation: &Extrapolation, bends: Option<Bend>) -> String {
    let mut words = Vec::new();
    if extrapolation.order_of_magnitude_only {
        words.push("order of magnitude only".to_owned());
    }
    if extrapolation.is_one() {
        words.push(format!("extrapolated ×{}", factor(extrapolation.factor)));
    }
    match bends {
        Some(Bend::Up) => words.push("curved: each costs more".to_owned()),
        Some(Bend::Down) => words.push("curved: each costs less".to_owned()),
        None => {}
    }
    words.join(", ")
}

fn factor(factor: f64) -> String {
    if factor < 10.0 { format!("{factor:.1}") } else { grouped(factor, 0) }
}

/// `20.1 viewers per core (19.6–20.7)`.
pub(super) fn users_per(users: &UsersPer, per: &str) -> String {
    let high = users.high.map_or_else(|| "?".to_owned(), number);
    format!("{} per {per} ({}–{high})", number(users.value), number(users.low))
}

fn machine_lines(out: &mut String, report: &PriceReport) {
    out.push_str("\nMachines\n");
    let cheapest = report.cost.as_ref().and_then(|cost| cost.machine.as_deref());
    let rows: Vec<Vec<String>> = report
        .machines
        .iter()
        .map(|offer| machine_row(offer, cheapest == Some(offer.machine.as_str())))
        .collect();
    table(out, &rows);
}

fn machine_row(offer: &MachineOffer, is_cheapest: bool) -> Vec<String> {
    let Some(plan) = &offer.plan else {
        let problem = offer.problem.clone().unwrap_or_default();
        return vec![offer.machine.clone(), "not possible".into(), problem];
    };
    let mark = if is_cheapest { ", cheapest" } else { "" };
    vec![
        offer.machine.clone(),
        format!(
            "{} ({}){mark}",
            grouped(plan.count as f64, 0),
            range(plan.count_low, plan.count_high)
        ),
        plan_words(plan),
    ]
}

fn plan_words(plan: &MachinePlan) -> String {
    let mut words = vec![format!("{} viewers each", grouped(plan.users_each.ceil(), 0))];
    words.push(match plan.decided_by {
        Some(resource) => format!("{} decides", resource.name()),
        None if plan.count == 1 => "one is enough".into(),
        None => "as far as the measurement can be extrapolated".into(),
    });
    if plan.extrapolated > 1.0 {
        words.push(format!("extrapolated ×{}", factor(plan.extrapolated)));
    }
    if let Some(processes) = &plan.processes_each {
        words.push(format!(
            "{} processes or times the workers on each, because of {}",
            processes.count, processes.because_of
        ));
    }
    words.join(", ")
}

/// The table of a section.
pub(super) fn table(out: &mut String, rows: &[Vec<String>]) {
    for line in columns(rows).lines() {
        let _ = writeln!(out, "  {line}");
    }
}

/// `1,234 USD (1,180–1,300)`.
fn money(amount: Estimate, is_open_above: bool, currency: &str) -> String {
    let digits = if amount.value >= 100.0 { 0 } else { 2 };
    let figure = |value| grouped(value, digits);
    let value = figure(amount.value);
    let (low, high) = (figure(amount.low), figure(amount.high));
    match (is_open_above, low == value && high == value) {
        (true, _) => format!("{value} {currency} (at least {low})"),
        (false, true) => format!("{value} {currency}"),
        (false, false) => format!("{value} {currency} ({low}–{high})"),
    }
}

fn interval(figure: Estimate, unit: Unit, is_rough: bool) -> String {
    let value = amount(figure.value, unit, is_rough);
    format!(
        "{value} ({}–{})",
        amount(figure.low, unit, is_rough),
        amount(figure.high, unit, is_rough)
    )
}

/// An amount with its unit; a rough one has one digit.
fn amount(value: f64, unit: Unit, is_rough: bool) -> String {
    // Rounded as it is shown: a line in bits.
    let (value, unit) = match unit {
        Unit::BytesPerSecond => (value * 8.0, Unit::BitsPerSecond),
        unit => (value, unit),
    };
    if is_rough { format!("~{}", unit.show(digits(value, 1))) } else { unit.show(value) }
}

/// The number with so many significant digits.
pub(super) fn digits(value: f64, digits: i32) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return value;
    }
    let size = 10f64.powf(value.log10().floor() - f64::from(digits - 1));
    (value / size).round() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        for (got, expect) in [
            (amount(123.456, Unit::Cores, false), "123 cores"),
            (amount(1.25e8, Unit::BytesPerSecond, false), "1.00 Gbit/s"),
            (amount(753.0, Unit::Cores, true), "~800 cores"),
            (amount(0.0, Unit::Count, true), "~0"),
            (
                money(Estimate { value: 1_234.4, low: 1_180.0, high: 1_300.0 }, false, "EUR"),
                "1,234 EUR (1,180–1,300)",
            ),
            (money(Estimate::exact(0.5), false, "EUR"), "0.50 EUR"),
            (money(Estimate::exact(0.5), true, "EUR"), "0.50 EUR (at least 0.50)"),
        ] {
            assert_eq!(got, expect);
        }
    }
}
