//! Results of calls: a status code, and a message with the remedy.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use throng_ring::RingError;

/// Result of a call. Zero is success, positive is "no frame, event or room", negative is an error
/// that throng_ring_error_message() explains.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrongRingStatus {
    /// Done.
    Ok = 0,
    /// There is no frame, event or room (yet), or the time ran out.
    Empty = 1,
    /// The back-pressure policy dropped the frame, and counted it.
    Dropped = 2,
    /// A pointer argument was NULL.
    NullPointer = -1,
    /// An argument is out of its range.
    InvalidArgument = -2,
    /// The system refused something; the message has its error.
    System = -3,
    /// The descriptors are of no valid ring: no memfd, seals missing, wrong magic, version or size.
    NotARing = -4,
    /// The frame can never fit, or a commit named more bytes than were claimed.
    TooLarge = -5,
    /// The consumer has left or died: join a new one, or end.
    ConsumerGone = -6,
    /// Shared words contradict each other, or the consumer closed the lane because they did.
    Corrupt = -7,
    /// A frame, claim or lane that is not (or no longer) open.
    NotOpen = -8,
    /// The ring has another consumer, or all its producer rows are taken.
    InUse = -9,
    /// A defect of this library, stopped at the border.
    Internal = -10,
}

/// A failed call: code and sentence.
#[derive(Debug)]
pub(crate) struct Failure {
    status: ThrongRingStatus,
    message: String,
}

impl Failure {
    pub(crate) fn null(argument: &'static str) -> Self {
        Self { status: ThrongRingStatus::NullPointer, message: format!("{argument} is NULL") }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { status: ThrongRingStatus::InvalidArgument, message: message.into() }
    }

    pub(crate) fn not_open(message: impl Into<String>) -> Self {
        Self { status: ThrongRingStatus::NotOpen, message: message.into() }
    }
}

impl From<RingError> for Failure {
    fn from(error: RingError) -> Self {
        let status = match &error {
            RingError::NotAMemfd
            | RingError::SealsMissing { .. }
            | RingError::WrongMagic { .. }
            | RingError::UnsupportedVersion { .. }
            | RingError::Truncated { .. }
            | RingError::BadHandshake { .. } => ThrongRingStatus::NotARing,
            RingError::BadGeometry { .. } | RingError::NoInheritedSocket { .. } => {
                ThrongRingStatus::InvalidArgument
            }
            RingError::FrameTooLarge { .. } | RingError::CommitTooLong { .. } => {
                ThrongRingStatus::TooLarge
            }
            RingError::ConsumerGone { .. } => ThrongRingStatus::ConsumerGone,
            RingError::Closed | RingError::Corrupt { .. } => ThrongRingStatus::Corrupt,
            RingError::UnknownFrame { .. }
            | RingError::UnknownClaim { .. }
            | RingError::UnknownLane { .. } => ThrongRingStatus::NotOpen,
            RingError::ConsumerAttached { .. } | RingError::TooManyProducers { .. } => {
                ThrongRingStatus::InUse
            }
            RingError::Io { .. } => ThrongRingStatus::System,
            _ => ThrongRingStatus::Internal,
        };
        Self { status, message: error.to_string() }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Runs the body of a call: an error becomes its code and is remembered, a panic ends here.
pub(crate) fn call(body: impl FnOnce() -> Result<ThrongRingStatus, Failure>) -> ThrongRingStatus {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failure)) => failure,
        Err(_) => Failure {
            status: ThrongRingStatus::Internal,
            message: "a defect of throng-ring: the call was given up, free the handle".to_owned(),
        },
    };
    let text = failure.message.replace('\0', "?");
    LAST.with(|last| *last.borrow_mut() = CString::new(text).unwrap_or_default());
    failure.status
}

/// A reference from a caller's pointer.
///
/// # Safety
/// `pointer` is NULL, or valid for reads and writes for 'a and not used elsewhere.
pub(crate) unsafe fn exclusive<'a, T>(
    pointer: *mut T,
    name: &'static str,
) -> Result<&'a mut T, Failure> {
    // SAFETY: not NULL is checked here, the rest is the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::null(name))
}

/// A shared reference from a caller's pointer.
///
/// # Safety
/// `pointer` is NULL, or valid for reads for 'a and not written meanwhile.
pub(crate) unsafe fn shared<'a, T>(
    pointer: *const T,
    name: &'static str,
) -> Result<&'a T, Failure> {
    // SAFETY: not NULL is checked here, the rest is the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(name))
}

/// Writes a result where the caller wants it.
///
/// # Safety
/// `to` is NULL, or valid for writes.
pub(crate) unsafe fn put<T>(to: *mut T, value: T, name: &'static str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::null(name));
    }
    // SAFETY: not NULL, and valid for writes by the caller's promise; the old value needs no drop.
    unsafe { to.write(value) };
    Ok(())
}

/// The error of this thread's latest failed call, and what to do about it; "" if none failed.
/// UTF-8. Valid until this thread's next failing call.
#[unsafe(no_mangle)]
pub extern "C" fn throng_ring_error_message() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// Version of this library, such as "0.1.0". Static.
#[unsafe(no_mangle)]
pub extern "C" fn throng_ring_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}
