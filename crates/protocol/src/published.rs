//! What publishers by RTSP and RTMP send: one encoding of each kind, in a loop.

use std::sync::Arc;
use std::time::Duration;

use throng_media::source::Clip;

/// Media that is published in a loop.
#[derive(Clone, Debug)]
pub struct PublishedMedia {
    /// The clip.
    pub clip: Arc<Clip>,
    /// Where in its loop it begins, so that the key frames of several publishers do not coincide.
    pub offset: Duration,
}
