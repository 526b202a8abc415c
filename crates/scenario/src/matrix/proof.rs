//! A proof: a matrix of one factor whose runs are made in pairs, so that a variant is only compared with the baseline that
//! ran next to it.

use super::{Matrix, PlannedRun};

/// The name of the only factor of a proof; its first level is the baseline.
pub const VARIANT: &str = "variant";

/// Four runs in the order A B B A or B A A B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The index of the variant's cell; that of the baseline is 0.
    pub variant: usize,
    /// Its runs, in order. The first and the second are a pair, and the third and the fourth; the first and the fourth are of one
    /// configuration, and so are the second and the third.
    pub runs: [PlannedRun; 4],
}

/// Less of a resource for a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrink {
    /// Which.
    pub resource: ShrunkResource,
    /// The share of it that is left; 1 limits it to what there is, so that both sides of a pair have the same mechanism.
    pub to: f64,
    /// Whether it is not the accused one: the value is expected to stay the same.
    pub is_placebo: bool,
}

/// A resource that can be shrunk.
#[derive(Clone, Debug, PartialEq)]
pub enum ShrunkResource {
    /// CPU time, by the quota of the control group.
    Cpu,
    /// Memory, by the limit of the control group; of the server's configured limit.
    Memory,
    /// Reads from a disk, by the limit of the control group; of the server's configured limit.
    Disk,
    /// What an interface sends, by a token bucket filter.
    Network {
        /// The interface.
        interface: String,
        /// Its line rate.
        rate_bps: f64,
    },
    /// Open files (`RLIMIT_NOFILE`).
    Nofile,
    /// Receive buffers of all sockets of this machine (`net.core.rmem_default`, `rmem_max`).
    Rmem,
}

impl ShrunkResource {
    /// The keys of all.
    pub const KEYS: [&'static str; 6] = ["cpu", "memory", "disk", "network", "nofile", "rmem"];

    /// Its key.
    #[must_use]
    pub fn key(&self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Network { .. } => "network",
            Self::Nofile => "nofile",
            Self::Rmem => "rmem",
        }
    }

    /// The resource as findings name it (docs/findings.md).
    #[must_use]
    pub fn finding_resource(&self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Network { .. } | Self::Rmem => "network",
            Self::Nofile => "sockets",
        }
    }
}

impl Matrix {
    /// Whether this is a proof.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        self.pairs.is_some()
    }

    /// The blocks of a proof, in the order in which they are made; none of a matrix. Each variant has one in each round, and
    /// which side begins alternates, from a first one by the seed.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        let variants = self.cells().len();
        let rounds = self.pairs.unwrap_or(0) / 2;
        let first = fastrand::Rng::with_seed(self.seed).bool();
        let mut repeats = vec![0u32; variants];
        let mut next = |cell: usize| {
            let repeat = repeats.get_mut(cell).map_or(0, |made| {
                *made += 1;
                *made
            });
            PlannedRun { cell, repeat }
        };
        let mut blocks = Vec::new();
        for round in 0..rounds {
            for variant in 1..variants {
                let starts_with_baseline = first == (round as usize + variant).is_multiple_of(2);
                let (a, b) = if starts_with_baseline { (0, variant) } else { (variant, 0) };
                blocks.push(Block { variant, runs: [a, b, b, a].map(&mut next) });
            }
        }
        blocks
    }

    /// Planned runs of a cell: the baseline of a proof has as many as all variants together.
    #[must_use]
    pub fn repeats_of(&self, cell: usize) -> u32 {
        let variants = u32::try_from(self.cells().len()).unwrap_or(u32::MAX);
        match self.pairs {
            None => self.repeats,
            Some(pairs) if cell == 0 => pairs.saturating_mul(variants.saturating_sub(1)),
            Some(pairs) => pairs,
        }
    }
}
