//! The kernel's units: pages and ticks.

/// Sizes of the kernel's units on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Units {
    pub(crate) page_bytes: u64,
    pub(crate) tick_seconds: f64,
}

impl Units {
    pub(crate) fn of_this_kernel() -> Self {
        Self {
            page_bytes: rustix::param::page_size() as u64,
            tick_seconds: 1.0 / rustix::param::clock_ticks_per_second().max(1) as f64,
        }
    }
}
