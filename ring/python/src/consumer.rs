//! The consumer, and frames as read-only buffers.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use throng_ring::{Event, LaneFds, LaneId, RingOptions};

use crate::{Holder, raised};

/// State that a consumer shares with its frames. Frames keep the memory mapped for as long as they
/// are held.
type Shared = Arc<Mutex<throng_ring::Consumer>>;

fn lock(shared: &Shared) -> MutexGuard<'_, throng_ring::Consumer> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lane's descriptors: ring, the two events, and the sessions' sockets with their numbers.
type Exported = (c_int, c_int, c_int, Vec<(u32, c_int)>);

/// Reads the frames of all its producers.
#[pyclass(frozen, module = "throng_ring")]
pub(crate) struct Consumer {
    shared: Shared,
    /// The descriptor to poll, which lives as long as `shared`.
    event_fd: c_int,
}

#[pymethods]
impl Consumer {
    /// A consumer without lanes.
    #[new]
    fn new() -> PyResult<Self> {
        let consumer = throng_ring::Consumer::new().map_err(raised)?;
        let event_fd = consumer.event_fd().as_raw_fd();
        Ok(Self { shared: Arc::new(Mutex::new(consumer)), event_fd })
    }

    /// Makes a lane with room for `frames` frames of `frame_bytes`: (lane, fd). Give the socket
    /// `fd` to the producer process (`pass_fds` and the environment variable THRONG_RING_FD, or
    /// SCM_RIGHTS), then close it here.
    #[pyo3(signature = (frame_bytes=3_110_400, frames=4))]
    fn add_lane(&self, frame_bytes: usize, frames: u32) -> PyResult<(u32, c_int)> {
        let options = RingOptions::for_frames(frame_bytes, frames);
        let (lane, invitation) = lock(&self.shared).add_lane(&options).map_err(raised)?;
        Ok((lane.get(), OwnedFd::from(invitation).into_raw_fd()))
    }

    /// Makes a lane for the process at the other end of a connected Unix socket: pass
    /// `connection.detach()`, because the descriptor belongs to the consumer from here on.
    #[pyo3(signature = (fd, frame_bytes=3_110_400, frames=4))]
    fn accept(&self, fd: c_int, frame_bytes: usize, frames: u32) -> PyResult<u32> {
        let socket = adopt(fd)?;
        let options = RingOptions::for_frames(frame_bytes, frames);
        Ok(lock(&self.shared).accept(socket, &options).map_err(raised)?.get())
    }

    /// Copies a lane's descriptors: (memfd, frame_event, room_event, [(session, socket), ...]). A
    /// supervisor that keeps them (they are the caller's to close) can start a new consumer should
    /// this one die: adopt().
    fn export(&self, lane: u32) -> PyResult<Exported> {
        let fds = lock(&self.shared).export(LaneId::from(lane)).map_err(raised)?;
        let sessions =
            fds.sessions.into_iter().map(|(session, socket)| (session, socket.into_raw_fd()));
        let [memfd, frame_event, room_event] =
            [fds.memfd, fds.frame_event, fds.room_event].map(IntoRawFd::into_raw_fd);
        Ok((memfd, frame_event, room_event, sessions.collect()))
    }

    /// Takes over a lane from a dead consumer, with the descriptors that export() copied; they
    /// belong to the consumer from here on. Frames that were peeked and not released are delivered
    /// again. Returns the lane's new number.
    fn adopt(&self, exported: Exported) -> PyResult<u32> {
        let (memfd, frame_event, room_event, sessions) = exported;
        let mut given =
            [memfd, frame_event, room_event].into_iter().chain(sessions.iter().map(|(_, fd)| *fd));
        // All are checked before any is taken: a failure half way would close some of the caller's.
        given.try_for_each(check)?;
        let own = |(session, fd): (u32, c_int)| Ok((session, adopt(fd)?));
        let fds = LaneFds {
            memfd: adopt(memfd)?,
            frame_event: adopt(frame_event)?,
            room_event: adopt(room_event)?,
            sessions: sessions.into_iter().map(own).collect::<PyResult<_>>()?,
        };
        Ok(lock(&self.shared).adopt(fds).map_err(raised)?.get())
    }

    /// Sleeps until there may be a frame or an event: True; False after `timeout` seconds. Other
    /// threads run meanwhile.
    #[pyo3(signature = (timeout=1.0))]
    fn wait(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = Duration::try_from_secs_f64(timeout)
            .map_err(|_| PyValueError::new_err("timeout is in seconds, from 0"))?;
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if !lock(&self.shared).arm() {
                return Ok(true);
            }
            let left =
                deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            // Nothing is locked while asleep, so that other threads can release frames.
            py.detach(|| sleep_on(&self.shared, self.event_fd, left));
            lock(&self.shared).process_events().map_err(raised)?;
            py.check_signals()?;
            if left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// The next frame of any lane, or None. It stays where it is until it is released; any number
    /// may be held.
    fn peek(&self) -> PyResult<Option<Frame>> {
        let mut consumer = lock(&self.shared);
        let Some(frame) = consumer.peek() else { return Ok(None) };
        let start = Start(consumer.payload(frame.id).map_err(raised)?.as_ptr());
        drop(consumer);
        let hold = Mutex::new(Hold { views: 0, released: false, given_back: false });
        let holder = Holder::this_process();
        Ok(Some(Frame { shared: Arc::clone(&self.shared), frame, start, hold, holder }))
    }

    /// The next event, oldest first, as a dict with "event" and "lane"; None if there is none.
    fn next_event<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, pyo3::types::PyDict>>> {
        let Some(event) = lock(&self.shared).next_event() else { return Ok(None) };
        let dict = pyo3::types::PyDict::new(py);
        match event {
            Event::ProducerLeft { lane, session, clean } => {
                dict.set_item("event", "producer_left")?;
                dict.set_item("lane", lane.get())?;
                dict.set_item("session", session)?;
                dict.set_item("clean", clean)?;
            }
            Event::LaneCorrupt { lane, error } => {
                dict.set_item("event", "lane_corrupt")?;
                dict.set_item("lane", lane.get())?;
                dict.set_item("error", error.to_string())?;
            }
            Event::LaneEnded { lane, stats } => {
                dict.set_item("event", "lane_ended")?;
                dict.set_item("lane", lane.get())?;
                dict.set_item("delivered_frames", stats.delivered_frames)?;
                let dropped: u64 =
                    stats.producers.iter().map(throng_ring::ProducerStats::dropped_frames).sum();
                dict.set_item("dropped_frames", dropped)?;
                dict.set_item("abandoned_claims", stats.abandoned_claims)?;
            }
            other => dict.set_item("event", format!("{other:?}"))?,
        }
        Ok(Some(dict))
    }

    /// Numbers of all lanes.
    fn lanes(&self) -> Vec<u32> {
        lock(&self.shared).lanes().map(LaneId::get).collect()
    }

    /// Frames that are peeked and not released.
    #[getter]
    fn held(&self) -> usize {
        lock(&self.shared).held()
    }

    /// For event loops: True if fileno() becomes readable with the next frame or event; False, and
    /// nothing is armed, if there is something already.
    fn arm(&self) -> bool {
        lock(&self.shared).arm()
    }

    /// The descriptor to poll for reading after arm().
    fn fileno(&self) -> c_int {
        self.event_fd
    }

    /// To be called after fileno() became readable; then peek.
    fn process_events(&self) -> PyResult<()> {
        lock(&self.shared).process_events().map_err(raised)
    }
}

/// Sleeps until a descriptor is readable. A signal or an error ends the sleep: the caller checks
/// again anyway.
pub(crate) fn sleep_on<T>(_alive: &Arc<T>, fd: c_int, left: Duration) {
    // SAFETY: the handle that owns the descriptor lives as long as `_alive`.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
    let mut fds = [rustix::event::PollFd::from_borrowed_fd(fd, rustix::event::PollFlags::IN)];
    let left = rustix::event::Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX / 2).min(86_400),
        tv_nsec: left.subsec_nanos().into(),
    };
    let _ = rustix::event::poll(&mut fds, Some(&left));
}

/// Where a frame's bytes are.
struct Start(*const u8);

// SAFETY: an address of shared memory that is only read; the frame that it belongs to is held
// meanwhile.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

struct Hold {
    views: usize,
    /// The user is done with the frame.
    released: bool,
    /// Its space was released to the producer.
    given_back: bool,
}

/// A received frame: a read-only buffer, so memoryview(frame) and np.frombuffer(frame) see shared
/// memory without a copy. Its space is freed for the producer once it is released (or dropped) and
/// no view of it is open.
#[pyclass(frozen, module = "throng_ring")]
pub(crate) struct Frame {
    shared: Shared,
    frame: throng_ring::Frame,
    start: Start,
    hold: Mutex<Hold>,
    holder: Holder,
}

impl Frame {
    fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, hold: &mut Hold) {
        if hold.released && hold.views == 0 && !hold.given_back && self.holder.is_this_process() {
            hold.given_back = true;
            // Cannot be unknown: it was peeked, and is released once.
            let _ = lock(&self.shared).release(self.frame.id);
        }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        // Before any lock: a thread that the fork left behind may have held it.
        if !self.holder.is_this_process() {
            return;
        }
        let mut hold = self.hold();
        hold.released = true;
        self.settle(&mut hold);
    }
}

#[pymethods]
impl Frame {
    /// Lane that it came from.
    #[getter]
    fn lane(&self) -> u32 {
        self.frame.lane.get()
    }

    /// Which of the producer's streams it belongs to.
    #[getter]
    fn stream(&self) -> u32 {
        self.frame.info.stream
    }

    /// Its kind; the application defines the numbers.
    #[getter]
    fn kind(&self) -> u16 {
        self.frame.info.kind
    }

    /// Its marks: KEYFRAME and so on, or-ed.
    #[getter]
    fn flags(&self) -> u16 {
        self.frame.info.flags.0
    }

    /// Time of presentation or capture, ns.
    #[getter]
    fn timestamp_ns(&self) -> u64 {
        self.frame.info.timestamp_ns
    }

    /// The producer's user data.
    #[getter]
    fn user_data(&self) -> u64 {
        self.frame.info.user_data
    }

    /// Number within the producer's stream; dropped frames count, so that a gap is a loss.
    #[getter]
    fn sequence(&self) -> u64 {
        self.frame.sequence
    }

    fn __len__(&self) -> usize {
        self.frame.len
    }

    /// A new memoryview of the bytes.
    #[getter]
    fn data<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, pyo3::types::PyMemoryView>> {
        pyo3::types::PyMemoryView::from(slf.as_any())
    }

    /// Ends the use of the frame. No new views can be made; its space is freed with the last open
    /// one. In a child that inherited the frame through fork() the space stays the parent's.
    fn release(&self) {
        let mut hold = self.hold();
        hold.released = true;
        self.settle(&mut hold);
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _traceback: Py<PyAny>) {
        self.release();
    }

    // SAFETY (of the slot): Python passes a `view` to fill in, and passes it to `__releasebuffer__`
    // once.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let frame = slf.get();
        let mut hold = frame.hold();
        if hold.released {
            return Err(PyBufferError::new_err(
                "the frame was released: take views before, copy what is kept",
            ));
        }
        // SAFETY: the bytes are mapped for `len` while the frame is held, which the count of views
        // keeps it.
        unsafe { fill(&slf, view, frame.start.0.cast_mut(), frame.frame.len, true, flags)? };
        hold.views += 1;
        Ok(())
    }

    // SAFETY (of the slot): only called for views that `__getbuffer__` filled in.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        let mut hold = self.hold();
        hold.views = hold.views.saturating_sub(1);
        self.settle(&mut hold);
    }
}

/// Describes plain bytes to Python.
///
/// # Safety
/// `view` is Python's to fill in; `start` is valid for `len` bytes until the view is released.
pub(crate) unsafe fn fill<T>(
    owner: &Bound<'_, T>,
    view: *mut ffi::Py_buffer,
    start: *mut u8,
    len: usize,
    read_only: bool,
    flags: c_int,
) -> PyResult<()> {
    // SAFETY: `view` is valid by the caller's promise; on failure Python's error is set, and
    // fetched.
    let failed = unsafe {
        ffi::PyBuffer_FillInfo(
            view,
            owner.as_ptr(),
            start.cast(),
            isize::try_from(len)?,
            c_int::from(read_only),
            flags,
        ) != 0
    };
    if failed { Err(PyErr::fetch(owner.py())) } else { Ok(()) }
}

fn check(fd: c_int) -> PyResult<()> {
    if fd < 3 {
        return Err(PyValueError::new_err(format!("descriptor {fd} cannot be passed on")));
    }
    Ok(())
}

/// A descriptor whose ownership Python passed.
pub(crate) fn adopt(fd: c_int) -> PyResult<OwnedFd> {
    check(fd)?;
    // SAFETY: the caller of the Python method passes its ownership, as documented.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
