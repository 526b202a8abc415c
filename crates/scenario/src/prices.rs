//! A price table: what a provider charges for machines, traffic, storage and requests, as a user
//! writes it down.
//!
//! `crates/scenario/src/read/prices/` reads the file. A price that is not written is an error and
//! not 0, so that no cost is forgotten: what costs nothing is written as 0.

/// A price file.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceTable {
    /// Who charges these prices.
    pub provider: String,
    /// The day or month of the prices: `2026-11` or `2026-11-24`.
    pub as_of: String,
    /// Where they come from, and what to know about them.
    pub note: Option<String>,
    /// The currency of all prices, such as `EUR`.
    pub currency: String,
    /// Machines, or CPUs by the hour.
    pub compute: ComputePrices,
    /// Traffic that leaves the provider.
    pub egress: EgressPrices,
    /// A GB (10^9 bytes) kept for a month.
    pub storage_per_gb_month: f64,
    /// A million requests.
    pub requests_per_million: f64,
}

/// How compute is charged.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputePrices {
    /// By the machine; at least one type.
    Machines(Vec<MachinePrice>),
    /// By the CPU and the GB of memory, in any amount.
    Amounts {
        /// A CPU for an hour.
        vcpu_hour: f64,
        /// A GB of memory for an hour.
        memory_gb_hour: f64,
    },
}

/// A type of machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachinePrice {
    /// Its name; unique in the table.
    pub name: String,
    /// Its CPUs.
    pub vcpus: f64,
    /// How fast one is, as a multiple of a CPU of the measured host.
    pub cpu_speed: f64,
    /// Its memory, GB.
    pub memory_gb: f64,
    /// Its line in each direction, Gbit/s.
    pub network_gbit_per_s: f64,
    /// Its price for an hour.
    pub per_hour: f64,
}

/// Prices of traffic, by the amount of a month.
#[derive(Clone, Debug, PartialEq)]
pub struct EgressPrices {
    /// GB that cost nothing.
    pub free_gb: f64,
    /// The tiers above them in rising order; the last has no end.
    pub tiers: Vec<EgressTier>,
}

/// A tier of prices of traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EgressTier {
    /// Up to this amount of the month, free GB included; `None`: any amount.
    pub up_to_gb: Option<f64>,
    /// A GB in it.
    pub per_gb: f64,
}

impl PriceTable {
    /// The most types of machines, and tiers of traffic, in a file.
    pub const ENTRIES_MAX: usize = 256;
}

impl EgressPrices {
    /// The price of `gb` in a month in which nothing else was sent.
    #[must_use]
    pub fn price_of(&self, gb: f64) -> f64 {
        let (mut from, mut price) = (self.free_gb, 0.0);
        for tier in &self.tiers {
            let until = tier.up_to_gb.unwrap_or(f64::INFINITY).min(gb);
            price += (until - from).max(0.0) * tier.per_gb;
            from = from.max(until);
        }
        price
    }
}
