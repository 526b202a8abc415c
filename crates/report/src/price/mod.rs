//! The size and the price of a crowd, from a run: what it needs, which machines, and what they
//! cost.
//!
//! ```text
//! run.db -> Summary, Traffic -> Size                    (throng-analysis: sizing)
//! Size + PriceTable -> machines, Cost -> text, JSON
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throng_analysis::sizing::{
    MachinePlan, MachineType, MeasuredCapacity, ResourceNeed, Size, SizeRequest, SizedResource,
    Sizing, TARGET_UTILISATION, Traffic,
};
use throng_observation::Goal;
use throng_observation::masked::masked;
use throng_observation::run::RunData;
use throng_scenario::prices::{ComputePrices, MachinePrice, PriceTable};

use crate::summary::Summary;

mod chat;
mod cost;
mod method;
mod section;
#[cfg(test)]
mod tests;
pub mod text;

pub use chat::{ChatSize, RoomsCost};
pub use cost::{Cost, CostKind, CostTerm};
pub(crate) use section::render as section;

/// The version of the shape of [`PriceReport`] as JSON. Keys are only ever added within a version.
pub const PRICE_VERSION: u32 = 1;

/// Seconds of an hour.
const HOUR_S: f64 = 3_600.0;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PriceRequest {
    /// Viewers at a time, all of them for the whole event.
    pub viewers: u32,
    /// How long the event lasts, hours.
    pub hours: f64,
    /// The share of each resource that may be used, above 0 and at most 1.
    pub target_utilisation: f64,
    /// GB that are kept for a month: the catalogue, or the recording.
    pub storage_gb: f64,
}

impl Default for PriceRequest {
    fn default() -> Self {
        Self { viewers: 1_000, hours: 1.0, target_utilisation: TARGET_UTILISATION, storage_gb: 0.0 }
    }
}

/// The size and the price of a crowd.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriceReport {
    /// Version of this shape, see `PRICE_VERSION`.
    pub price_version: u32,
    /// The answer in one sentence.
    pub headline: String,
    /// Viewers at a time.
    pub viewers: u32,
    /// Hours.
    pub hours: f64,
    /// GB that are kept for a month.
    pub storage_gb: f64,
    /// What they need.
    pub size: Size,
    /// What a user received and requested; `null` if nothing arrived. Without what a chat sends.
    pub traffic: Option<Traffic>,
    /// All viewers in one room of the run's chat; `null` if it had none, or its cost could not be
    /// told.
    #[serde(default)]
    pub chat: Option<ChatSize>,
    /// Whose prices; `null` without a price file.
    pub prices: Option<PricesUsed>,
    /// Each type of machine in the price file.
    pub machines: Vec<MachineOffer>,
    /// The cost; `null` without a price file.
    pub cost: Option<Cost>,
    /// What a reader must know about these figures.
    pub notes: Vec<String>,
    /// How they were made, in sentences.
    pub method: Vec<String>,
    /// The run that they come from, in one sentence.
    pub run_headline: String,
    /// Its target.
    pub target: String,
    /// The throng that made this report.
    pub throng_version: String,
}

/// The price file in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PricesUsed {
    /// Who charges these prices.
    pub provider: String,
    /// The day or month of the prices.
    pub as_of: String,
    /// What its author says about them.
    pub note: Option<String>,
    /// The currency of all amounts.
    pub currency: String,
}

/// A type of machine and how many hold the crowd.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MachineOffer {
    /// The type.
    pub machine: String,
    /// The price of one for an hour.
    pub per_hour: f64,
    /// How many; `null` if it does not do.
    pub plan: Option<MachinePlan>,
    /// Why it does not do.
    pub problem: Option<String>,
}

impl PriceReport {
    /// Sizes `request` by the run, and prices it if there are `prices`.
    #[must_use]
    pub fn of(
        run: &RunData,
        summary: &Summary,
        request: &PriceRequest,
        prices: Option<&PriceTable>,
    ) -> Self {
        let traffic = Traffic::of(run, Goal::Acceptable);
        let size_request = SizeRequest {
            users: f64::from(request.viewers),
            target_utilisation: request.target_utilisation,
            shares_host_with_crowd: shares_host_with_crowd(summary),
        };
        let sizing = Sizing::of(&summary.demand, traffic.as_ref(), size_request);
        let mut size = sizing.size(capacity(summary).as_ref());
        let mut notes = std::mem::take(&mut size.notes);
        notes.extend(method::notes(summary, traffic.as_ref(), &sizing));
        let chat = ChatSize::of(run, summary, request, prices);
        let machines = prices.map(|prices| offers(prices, &sizing)).unwrap_or_default();
        let cost = prices.map(|prices| {
            let parts = cost::Parts {
                request,
                sizing: &sizing,
                size: &size,
                traffic: traffic.as_ref(),
                chat: chat.as_ref(),
            };
            Cost::of(prices, &machines, &parts)
        });
        let mut report = Self {
            price_version: PRICE_VERSION,
            headline: String::new(),
            viewers: request.viewers,
            hours: request.hours,
            storage_gb: request.storage_gb,
            size,
            traffic,
            chat,
            prices: prices.map(PricesUsed::of),
            machines,
            cost,
            notes,
            method: method::sentences(prices.is_some()),
            run_headline: summary.headline.clone(),
            target: summary.target.clone(),
            throng_version: summary.throng_version.clone(),
        };
        report.headline = text::headline(&report);
        report
    }

    /// Whether what a user costs of the CPU is not known: the server was not watched, or too few
    /// loads passed.
    #[must_use]
    pub fn has_no_size(&self) -> bool {
        let is_cpu =
            |need: &ResourceNeed| need.resource == SizedResource::Cpu && need.users_per.is_some();
        self.chat.is_none() && !self.size.needs.iter().any(is_cpu)
    }

    /// Indented JSON with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        crate::to_json(self)
    }
}

impl PricesUsed {
    fn of(prices: &PriceTable) -> Self {
        Self {
            // Where they come from may be a URL.
            provider: masked(&prices.provider).into_owned(),
            as_of: prices.as_of.clone(),
            note: prices.note.as_deref().map(|note| masked(note).into_owned()),
            currency: prices.currency.clone(),
        }
    }
}

/// Whether the watched host is the generator's: its clock then has no error.
fn shares_host_with_crowd(summary: &Summary) -> bool {
    summary.hosts.iter().any(|host| host.clock_error_ms == Some(0.0))
}

/// The capacity in users that a search found; that of a varied value is no number of users.
fn capacity(summary: &Summary) -> Option<MeasuredCapacity> {
    let capacity = summary.capacity.as_ref().filter(|capacity| capacity.values.is_empty())?;
    // Where no load failed, the capacity is at least that, which is no bound.
    let failing = capacity.first_failing?;
    let users = f64::from(capacity.users?);
    Some(MeasuredCapacity { users, first_failing: Some(f64::from(failing)) })
}

fn offers(prices: &PriceTable, sizing: &Sizing<'_>) -> Vec<MachineOffer> {
    let ComputePrices::Machines(machines) = &prices.compute else { return Vec::new() };
    let offer = |price: &MachinePrice| {
        let plan = sizing.machines(&MachineType {
            name: price.name.clone(),
            vcpus: price.vcpus,
            cpu_speed: price.cpu_speed,
            memory_bytes: price.memory_gb * 1e9,
            network_bytes_per_s: price.network_gbit_per_s * 125e6,
        });
        let (machine, per_hour) = (price.name.clone(), price.per_hour);
        match plan {
            Ok(plan) => MachineOffer { machine, per_hour, plan: Some(plan), problem: None },
            Err(problem) => MachineOffer { machine, per_hour, plan: None, problem: Some(problem) },
        }
    };
    machines.iter().map(offer).collect()
}

/// The JSON Schema of [`PriceReport`] (draft 2020-12), as kept in `docs/price.schema.json`.
#[must_use]
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(PriceReport).to_value()
}
