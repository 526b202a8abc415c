//! A proof: a matrix of one factor whose runs are made in pairs, so that a variant is only compared
//! with the baseline that ran next to it.

use std::collections::VecDeque;

use super::{Matrix, Measure, PlannedRun};

/// The name of the only factor of a proof; its first level is the baseline.
pub const VARIANT: &str = "variant";

/// Four runs in the order A B B A or B A A B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The index of the variant's cell; that of the baseline is 0.
    pub variant: usize,
    /// Its runs, in order. The first and the second are a pair, and the third and the fourth; the
    /// first and the fourth are of one configuration, and so are the second and the third.
    pub runs: [PlannedRun; 4],
}

impl Block {
    /// Its two pairs of neighbouring runs.
    fn pairs(&self) -> [Pair; 2] {
        let [a, b, c, d] = self.runs.clone();
        [Pair { variant: self.variant, runs: [a, b] }, Pair { variant: self.variant, runs: [c, d] }]
    }
}

/// Two neighbouring runs in the order in which they are made, one of the baseline and one of a
/// variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The index of the variant's cell; that of the baseline is 0.
    pub variant: usize,
    /// Its runs.
    pub runs: [PlannedRun; 2],
}

/// Less of a resource for a variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Shrink {
    /// Which.
    pub resource: ShrunkResource,
    /// The share of it that is left; 1 limits it to what there is, so that both sides of a pair
    /// have the same mechanism.
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
}

impl Matrix {
    /// Whether this is a proof.
    #[must_use]
    pub fn is_proof(&self) -> bool {
        self.pairs.is_some()
    }

    /// The search of the baseline that comes before all pairs, where it chooses what they measure:
    /// a run of its own.
    #[must_use]
    pub fn first_search(&self) -> Option<PlannedRun> {
        match self.measure {
            Measure::Auto { .. } => Some(PlannedRun { cell: 0, repeat: 0 }),
            Measure::Hold(_) | Measure::Find(_) => None,
        }
    }

    /// The least factor by which a variant is known to have more of what it relieves; `None` if
    /// none of them says it.
    #[must_use]
    pub fn least_more(&self) -> Option<f64> {
        let levels = self.factors.iter().flat_map(|factor| &factor.levels);
        levels.filter_map(|level| level.more).min_by(f64::total_cmp)
    }

    /// The blocks of a proof, in the order in which they are made; none of a matrix. Each variant
    /// has one in each round, and which side begins alternates, from a first one by the seed.
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

    /// After how many pairs of each variant a proof is looked at, which ends it if all variants are
    /// decided: after each round of blocks, but not more often than intervals are known for. The
    /// last is its end.
    #[must_use]
    pub fn looks(&self) -> Vec<u32> {
        const LOOKS_MAX: u32 = 10;
        let rounds = self.pairs.unwrap_or(0) / 2;
        let step = rounds.div_ceil(LOOKS_MAX).max(1);
        let is_look = |round: &u32| round.is_multiple_of(step) || *round == rounds;
        (1..=rounds).filter(is_look).map(|round| round * 2).collect()
    }

    /// The pairs that are made once more, after all blocks, for those that are lost: in the same
    /// order of their two runs, so that either side begins as often as before. A pair that is lost
    /// again is made again, up to as many as there are pairs.
    ///
    /// What was made decides what comes next: the list for more lost pairs begins with the list for
    /// fewer, if none before them is lost later.
    #[must_use]
    pub fn repeated(&self, is_lost: &dyn Fn(&Pair) -> bool) -> Vec<Pair> {
        if !self.is_proof() {
            return Vec::new();
        }
        let cells = self.cells().len();
        let mut made: Vec<u32> = (0..cells).map(|cell| self.repeats_of(cell)).collect();
        let mut left = vec![self.pairs.unwrap_or(0); cells];
        let mut next: VecDeque<Pair> = self.blocks().iter().flat_map(Block::pairs).collect();
        let mut repeated = Vec::new();
        while let Some(pair) = next.pop_front() {
            let Some(left) = left.get_mut(pair.variant).filter(|left| **left > 0) else { continue };
            if !is_lost(&pair) {
                continue;
            }
            *left -= 1;
            let again = |run: PlannedRun| {
                let repeat = made.get_mut(run.cell).map_or(0, |made| {
                    *made += 1;
                    *made
                });
                PlannedRun { repeat, ..run }
            };
            let again = Pair { variant: pair.variant, runs: pair.runs.map(again) };
            next.push_back(again.clone());
            repeated.push(again);
        }
        repeated
    }

    /// Planned runs of a cell, without those that are repeated: the baseline of a proof has as many
    /// as all variants together.
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
