//! Python interface of throng-ring: frames and claims are buffers over shared memory, guarded so
//! that no view outlives its memory.

mod consumer;
mod producer;

use pyo3::prelude::*;

pyo3::create_exception!(
    _native,
    RingError,
    pyo3::exceptions::PyOSError,
    "A call on a ring failed; says what to do."
);

fn raised(error: throng_ring::RingError) -> PyErr {
    RingError::new_err(error.to_string())
}

/// The process that holds a frame or a claim. A child that was forked meanwhile has a copy of the
/// object, and drops it at the latest when it exits: the shared state does not change then, because
/// it belongs to the parent.
#[derive(Clone, Copy)]
struct Holder(u32);

impl Holder {
    fn this_process() -> Self {
        Self(std::process::id())
    }

    fn is_this_process(self) -> bool {
        self.0 == std::process::id()
    }
}

/// The compiled part of the package `throng_ring`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<consumer::Consumer>()?;
    module.add_class::<consumer::Frame>()?;
    module.add_class::<producer::Producer>()?;
    module.add_class::<producer::Claim>()?;
    module.add("RingError", module.py().get_type::<RingError>())
}
