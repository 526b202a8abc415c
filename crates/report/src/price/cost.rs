//! The cost of an event: compute, traffic, storage, requests, each with the interval of what it is
//! the price of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::sizing::{Estimate, Size, SizedResource, Sizing, Traffic};
use throng_observation::units::{bytes, count};
use throng_scenario::prices::{ComputePrices, PriceTable};

use super::{ChatSize, HOUR_S, MachineOffer, PriceRequest};

/// A part of the cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostKind {
    /// Machines, or CPUs and memory.
    Compute,
    /// Traffic to viewers.
    Egress,
    /// What is kept for a month.
    Storage,
    /// Requests.
    Requests,
}

impl CostKind {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Egress => "egress",
            Self::Storage => "storage",
            Self::Requests => "requests",
        }
    }
}

/// A part of the cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostTerm {
    /// Which.
    pub kind: CostKind,
    /// For the event; `null` if it is not known.
    pub amount: Option<Estimate>,
    /// Whether the upper end is not known, so that `high` is the figure itself.
    pub is_open_above: bool,
    /// Its share of the total; `null` if it is not known.
    pub share: Option<f64>,
    /// What is paid, in words; or why it is not known.
    pub detail: String,
}

/// The cost of the event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The parts.
    pub terms: Vec<CostTerm>,
    /// The largest part; `null` if all cost nothing.
    pub dominant: Option<CostKind>,
    /// The sum of the parts that are known.
    pub total: Estimate,
    /// The parts that are not in it, because they are not known.
    pub without: Vec<CostKind>,
    /// Whether the upper end of the total is not known.
    pub is_open_above: bool,
    /// The total for an hour of the event.
    pub per_hour: Estimate,
    /// The total for a thousand viewers, for the whole event.
    pub per_1000_viewers: Estimate,
    /// The total for a thousand viewers for an hour.
    pub per_1000_viewer_hours: Estimate,
    /// The type of machine that is cheapest; `null` where compute is not charged by the machine.
    pub machine: Option<String>,
}

/// What is priced.
pub(super) struct Parts<'a> {
    pub(super) request: &'a PriceRequest,
    pub(super) sizing: &'a Sizing<'a>,
    pub(super) size: &'a Size,
    pub(super) traffic: Option<&'a Traffic>,
    pub(super) chat: Option<&'a ChatSize>,
}

impl Cost {
    pub(super) fn of(prices: &PriceTable, machines: &[MachineOffer], parts: &Parts<'_>) -> Self {
        let request = parts.request;
        let problem = parts.chat.filter(|chat| !chat.is_joinable()).and_then(ChatSize::problem);
        let (compute, machine) = match (&prices.compute, problem) {
            // More machines do not help: a room is the work of one thread.
            (_, Some(problem)) => (unknown(CostKind::Compute, problem), None),
            (ComputePrices::Machines(_), None) => machine_term(machines, request.hours),
            (ComputePrices::Amounts { vcpu_hour, memory_gb_hour }, None) => {
                (amounts_term(parts, *vcpu_hour, *memory_gb_hour), None)
            }
        };
        let mut terms =
            vec![compute, egress(prices, parts), storage(prices, request), requests(prices, parts)];
        let total =
            terms.iter().filter_map(|term| term.amount).fold(Estimate::default(), Estimate::plus);
        for term in &mut terms {
            term.share =
                term.amount.filter(|_| total.value > 0.0).map(|amount| amount.value / total.value);
        }
        let dominant = terms
            .iter()
            .filter(|term| term.share.is_some_and(|share| share > 0.0))
            .max_by(|a, b| a.share.unwrap_or(0.0).total_cmp(&b.share.unwrap_or(0.0)));
        let thousands = f64::from(request.viewers) / 1e3;
        Self {
            dominant: dominant.map(|term| term.kind),
            without: terms
                .iter()
                .filter(|term| term.amount.is_none())
                .map(|term| term.kind)
                .collect(),
            is_open_above: terms.iter().any(|term| term.is_open_above),
            total,
            per_hour: total.times(1.0 / request.hours),
            per_1000_viewers: total.times(1.0 / thousands),
            per_1000_viewer_hours: total.times(1.0 / thousands / request.hours),
            terms,
            machine,
        }
    }
}

fn term(kind: CostKind, amount: Estimate, detail: String) -> CostTerm {
    CostTerm { kind, amount: Some(amount), is_open_above: false, share: None, detail }
}

fn unknown(kind: CostKind, detail: String) -> CostTerm {
    CostTerm { kind, amount: None, is_open_above: false, share: None, detail }
}

/// The cheapest type of machine.
fn machine_term(machines: &[MachineOffer], hours: f64) -> (CostTerm, Option<String>) {
    let offered = machines.iter().filter_map(|offer| Some((offer, offer.plan.as_ref()?)));
    let price = |offer: &MachineOffer, count: u64| count as f64 * offer.per_hour * hours;
    let cheapest = offered.min_by(|a, b| price(a.0, a.1.count).total_cmp(&price(b.0, b.1.count)));
    let Some((offer, plan)) = cheapest else {
        let problem = machines.iter().find_map(|offer| offer.problem.clone()).unwrap_or_default();
        return (unknown(CostKind::Compute, problem), None);
    };
    let amount = Estimate {
        value: price(offer, plan.count),
        low: price(offer, plan.count_low),
        high: price(offer, plan.count_high.unwrap_or(plan.count)),
    };
    let detail = format!("{} × {}", plan.count, offer.machine);
    let is_open_above = plan.count_high.is_none();
    let term = CostTerm { is_open_above, ..term(CostKind::Compute, amount, detail) };
    (term, Some(offer.machine.clone()))
}

/// CPUs and memory by the hour, spread over servers like the measured one, or over as few as can be
/// predicted.
fn amounts_term(parts: &Parts<'_>, vcpu_hour: f64, memory_gb_hour: f64) -> CostTerm {
    let servers = parts.size.like_measured.as_ref().map_or(1, |like| like.servers);
    let servers = servers.max(parts.sizing.servers_within_reach());
    let provide = |resource| parts.sizing.need_over(resource, servers).map(|need| need.provide);
    let cpu = parts.sizing.need(SizedResource::Cpu).filter(|need| need.users_per.is_some());
    let Some(cores) = cpu.and_then(|_| provide(SizedResource::Cpu)) else {
        return unknown(
            CostKind::Compute,
            "how much of the server's CPU a user costs is not known".into(),
        );
    };
    let memory = provide(SizedResource::Memory);
    if memory.is_none() && memory_gb_hour > 0.0 {
        return unknown(
            CostKind::Compute,
            "how much of the server's memory a user costs was not measured".into(),
        );
    }
    let hours = parts.request.hours;
    let memory_gb = memory.unwrap_or_default().times(1e-9);
    let amount = cores.times(vcpu_hour * hours).plus(memory_gb.times(memory_gb_hour * hours));
    let detail = format!(
        "{:.1} vCPUs and {:.1} GB of memory on {}",
        cores.value,
        memory_gb.value,
        count(servers, "servers")
    );
    term(CostKind::Compute, amount, detail)
}

fn egress(prices: &PriceTable, parts: &Parts<'_>) -> CostTerm {
    let chat = parts
        .chat
        .filter(|chat| chat.is_joinable())
        .map(|chat| chat.bytes(parts.request.hours) / 1e9);
    let of_traffic = parts.traffic.map(|traffic| {
        traffic.received_bytes.per_second.times(viewer_seconds(parts.request) / 1e9)
    });
    if of_traffic.is_none() && chat.is_none() {
        return unknown(
            CostKind::Egress,
            "the run's users received nothing that has a price".into(),
        );
    }
    let gb = of_traffic.unwrap_or_default().plus(Estimate::exact(chat.unwrap_or(0.0)));
    let amount = Estimate {
        value: prices.egress.price_of(gb.value),
        low: prices.egress.price_of(gb.low),
        high: prices.egress.price_of(gb.high),
    };
    let of_chat =
        chat.map_or_else(String::new, |gb| format!(", {} of it the chat", bytes(gb * 1e9)));
    term(
        CostKind::Egress,
        amount,
        format!("{} received by viewers{of_chat}", bytes(gb.value * 1e9)),
    )
}

fn storage(prices: &PriceTable, request: &PriceRequest) -> CostTerm {
    let detail = if request.storage_gb > 0.0 {
        format!("{} kept for a month", bytes(request.storage_gb * 1e9))
    } else {
        "nothing is kept (--storage-gb)".into()
    };
    let amount = Estimate::exact(request.storage_gb * prices.storage_per_gb_month);
    term(CostKind::Storage, amount, detail)
}

fn requests(prices: &PriceTable, parts: &Parts<'_>) -> CostTerm {
    let Some(requests) = parts.traffic.and_then(|traffic| traffic.requests.as_ref()) else {
        let detail = "no requests were counted: only players send them for media".into();
        return term(CostKind::Requests, Estimate::default(), detail);
    };
    let millions = requests.per_second.times(viewer_seconds(parts.request) / 1e6);
    let detail = format!("{:.3} million requests of players", millions.value);
    term(CostKind::Requests, millions.times(prices.requests_per_million), detail)
}

fn viewer_seconds(request: &PriceRequest) -> f64 {
    f64::from(request.viewers) * request.hours * HOUR_S
}
