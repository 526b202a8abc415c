//! The producer, and claims as writable buffers.

use std::ffi::c_int;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use throng_ring::{ClaimToken, Flags, FrameInfo, Policy, RingError};

use crate::consumer::{adopt, fill, sleep_on};
use crate::{Holder, RingError as Raised, raised};

/// How often a claim that waits for room checks for signals (Ctrl-C) and for the end of the
/// consumer.
const SLICE: Duration = Duration::from_millis(50);
/// Shortest wait of the ring: it checks for its consumer only if it waits at all.
const LOOK: Duration = Duration::from_millis(1);

/// The handle, and how long its claims wait for room; None under the other policies.
///
/// A thread that locks it may hold the interpreter meanwhile, so no thread sleeps with the lock.
struct Handle {
    producer: throng_ring::Producer,
    wait: Option<Duration>,
}

type Shared = Arc<Mutex<Handle>>;

fn lock(shared: &Shared) -> MutexGuard<'_, Handle> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

enum ClaimAttempt {
    /// Claimed, or dropped by the policy.
    Done(Option<ClaimToken>),
    /// There is no room, and there is time left to wait. The room event is armed.
    Full,
}

impl Handle {
    /// Claims without sleeping for room, unless another process takes what was there a moment ago.
    fn try_claim(
        &mut self,
        len: usize,
        info: &FrameInfo,
        left: Duration,
    ) -> Result<ClaimAttempt, RingError> {
        if self.wait.is_some() {
            let may_fit = len <= self.producer.frame_bytes_max() && !left.is_zero();
            // The claim itself counts the frame, and returns the error of the frame or the
            // consumer.
            if may_fit && !self.producer.poll_room(len)? && self.producer.has_consumer() {
                return Ok(ClaimAttempt::Full);
            }
            self.producer.set_policy(Policy::Wait { timeout: left.clamp(LOOK, SLICE) });
        }
        self.producer.claim_token(len, info).map(ClaimAttempt::Done)
    }
}

/// Writes frames into a ring.
#[pyclass(frozen, module = "throng_ring")]
pub(crate) struct Producer {
    shared: Shared,
    /// The descriptor that signals room, which lives as long as `shared`.
    room_event: c_int,
}

impl Producer {
    fn joined(producer: Result<throng_ring::Producer, RingError>) -> PyResult<Self> {
        let producer = producer.map_err(raised)?;
        let room_event = producer.room_event().as_raw_fd();
        Ok(Self { shared: Arc::new(Mutex::new(Handle { producer, wait: None })), room_event })
    }
}

#[pymethods]
impl Producer {
    /// Joins at a socket path where a consumer accepts.
    #[staticmethod]
    fn connect(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::joined(py.detach(|| throng_ring::Producer::connect(path)))
    }

    /// Joins through a connected Unix socket; its descriptor belongs to the producer from here on.
    #[staticmethod]
    fn join(py: Python<'_>, fd: c_int) -> PyResult<Self> {
        let socket = adopt(fd)?;
        Self::joined(py.detach(|| throng_ring::Producer::join(socket)))
    }

    /// Joins through the inherited socket whose number is in THRONG_RING_FD. To be called once.
    #[staticmethod]
    fn join_inherited(py: Python<'_>) -> PyResult<Self> {
        Self::joined(py.detach(throng_ring::Producer::join_inherited))
    }

    /// Sets the policy for a full ring: "wait" (at most `timeout` seconds), "drop_newest",
    /// "drop_oldest" or "drop_until_keyframe".
    #[pyo3(signature = (policy, timeout=1.0))]
    fn set_policy(&self, policy: &str, timeout: f64) -> PyResult<()> {
        let policy = match policy {
            "wait" => Policy::Wait {
                timeout: Duration::try_from_secs_f64(timeout)
                    .map_err(|_| PyValueError::new_err("timeout is in seconds, from 0"))?,
            },
            "drop_newest" => Policy::DropNewest,
            "drop_oldest" => Policy::DropOldest,
            "drop_until_keyframe" => Policy::DropUntilKeyframe,
            other => {
                return Err(PyValueError::new_err(format!(
                    "there is no policy {other:?}: wait, drop_newest, drop_oldest or \
                     drop_until_keyframe"
                )));
            }
        };
        let mut handle = lock(&self.shared);
        handle.wait = if let Policy::Wait { timeout } = policy { Some(timeout) } else { None };
        handle.producer.set_policy(policy);
        Ok(())
    }

    /// Bytes of the largest frame that fits this ring.
    #[getter]
    fn frame_bytes_max(&self) -> usize {
        lock(&self.shared).producer.frame_bytes_max()
    }

    /// Claims room for `len` bytes, to be written in place; None if the policy drops the frame.
    /// Other threads run while it waits, and a signal's handler may end the wait by an exception.
    #[pyo3(signature = (len, *, stream=0, kind=0, flags=0, timestamp_ns=0, user_data=0))]
    fn claim(
        &self,
        py: Python<'_>,
        len: usize,
        stream: u32,
        kind: u16,
        flags: u16,
        timestamp_ns: u64,
        user_data: u64,
    ) -> PyResult<Option<Claim>> {
        let info = FrameInfo { stream, kind, flags: Flags(flags), timestamp_ns, user_data };
        let open = |token| Claim {
            shared: Arc::clone(&self.shared),
            holder: Holder::this_process(),
            len,
            open: Mutex::new(Open { token: Some(token), views: 0, given_up: false }),
        };
        let began_at = Instant::now();
        loop {
            let tried = py.detach(|| {
                let mut handle = lock(&self.shared);
                let left = handle.wait.unwrap_or_default().saturating_sub(began_at.elapsed());
                let tried = handle.try_claim(len, &info, left);
                drop(handle);
                if let Ok(ClaimAttempt::Full) = tried {
                    sleep_on(&self.shared, self.room_event, left.min(SLICE));
                }
                tried
            });
            match tried.map_err(raised)? {
                ClaimAttempt::Done(token) => return Ok(token.map(open)),
                ClaimAttempt::Full => py.check_signals()?,
            }
        }
    }
}

struct Open {
    /// None once committed or aborted.
    token: Option<ClaimToken>,
    views: usize,
    /// To be aborted as soon as no view is open.
    given_up: bool,
}

/// Room in the ring, a writable buffer. As a context manager it commits at the end of the block,
/// and aborts if an exception leaves it.
#[pyclass(frozen, module = "throng_ring")]
pub(crate) struct Claim {
    shared: Shared,
    holder: Holder,
    len: usize,
    open: Mutex<Open>,
}

impl Claim {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aborts the claim, or leaves that to the last view.
    fn give_up(&self) {
        // Before any lock: a thread that a fork left behind may have held it.
        if !self.holder.is_this_process() {
            return;
        }
        let mut open = self.open();
        open.given_up = true;
        let token = if open.views == 0 { open.token.take() } else { None };
        // Never both locks: a thread that waits for one may hold the interpreter, which the holder
        // of the other needs.
        drop(open);
        if let Some(token) = token {
            // Fails only if the ring's words were overwritten; the next claim reports it.
            let _ = lock(&self.shared).producer.abort(token);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.give_up();
    }
}

#[pymethods]
impl Claim {
    fn __len__(&self) -> usize {
        self.len
    }

    /// A new writable memoryview of the room.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, pyo3::types::PyMemoryView>> {
        pyo3::types::PyMemoryView::from(slf.as_any())
    }

    /// Makes the frame (its first `len` bytes) visible. BufferError while a view of it is open: a
    /// later write would change what the consumer reads.
    #[pyo3(signature = (len=None))]
    fn commit(&self, py: Python<'_>, len: Option<usize>) -> PyResult<()> {
        if !self.holder.is_this_process() {
            return Err(Raised::new_err(
                "the claim is of the process that forked this one: claim in a producer that \
                 was made here",
            ));
        }
        let mut open = self.open();
        if open.views > 0 {
            return Err(PyBufferError::new_err(
                "a view of the claim is open: release the memoryview (delete the array) \
                 before the commit",
            ));
        }
        let closed = || PyValueError::new_err("the claim was committed or aborted before");
        let token = if open.given_up { None } else { open.token.take() }.ok_or_else(closed)?;
        drop(open);
        py.detach(|| lock(&self.shared).producer.commit(token, len.unwrap_or(self.len)))
            .map_err(raised)
    }

    /// Aborts the claim, at the latest when the last view of it is released.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.give_up());
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Py<PyAny>,
        _value: Py<PyAny>,
        _traceback: Py<PyAny>,
    ) -> PyResult<()> {
        if !kind.is_none(py) {
            self.abort(py);
            return Ok(());
        }
        let is_open = {
            let open = self.open();
            open.token.is_some() && !open.given_up
        };
        if is_open { self.commit(py, None).inspect_err(|_| self.abort(py)) } else { Ok(()) }
    }

    // SAFETY (of the slot): Python passes a `view` to fill in, and passes it to `__releasebuffer__`
    // once.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let claim = slf.get();
        let mut open = claim.open();
        let token = if open.given_up { None } else { open.token.as_ref() };
        let Some(start) = token.map(ClaimToken::as_ptr) else {
            return Err(PyBufferError::new_err(
                "the claim was committed or aborted: its room is not ours any more",
            ));
        };
        // SAFETY: claimed for `len` bytes; a commit or abort waits until no view is open.
        unsafe { fill(&slf, view, start, claim.len, false, flags)? };
        open.views += 1;
        Ok(())
    }

    // SAFETY (of the slot): only called for views that `__getbuffer__` filled in.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        let mut open = self.open();
        open.views = open.views.saturating_sub(1);
        let given_up = open.given_up;
        drop(open);
        if given_up {
            self.give_up();
        }
    }
}
