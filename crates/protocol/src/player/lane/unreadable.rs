//! The failure of a file or segment whose media cannot be read.

use throng_media::timing::TimingError;
use throng_observation::{Failure, FailureReason, Url};

/// What is at `url` breaks its format, or has one that players know and throng does not.
pub(in crate::player) fn unreadable(url: &Url, error: &TimingError) -> Failure {
    let reason = match error.is_of_other_format() {
        true => FailureReason::Unsupported,
        false => FailureReason::Protocol,
    };
    Failure::new(reason, format!("{url}: {error}"))
}
