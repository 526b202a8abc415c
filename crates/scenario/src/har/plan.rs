//! The plan of a page: its requests, in which order they follow, and when the player begins.

use std::time::Duration;

use throng_observation::Url;

use super::LeftOut;

/// What viewers request around their player.
#[derive(Clone, Debug, PartialEq)]
pub struct PagePlan {
    /// The requests, in the order in which they began in the recording; at least one.
    pub requests: Vec<PageRequest>,
    /// When the player begins.
    pub player: PlayerStart,
    /// What is not repeated.
    pub left_out: LeftOut,
}

/// A request of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageRequest {
    /// `http:` or `https:`.
    pub url: Url,
    /// HEAD, else GET.
    pub is_head: bool,
    /// Headers of the recording, without those that the client sets itself.
    pub headers: Vec<(String, String)>,
    /// The status of the recorded response.
    pub status: u16,
    /// It is the page itself, or a redirect to it: without it there is no player.
    pub is_document: bool,
    /// When it begins.
    pub begins: After,
    /// The requests, as indexes, that begin after its end.
    pub followers: Vec<usize>,
    /// What a viewer with a warm cache does.
    pub when_warm: WhenWarm,
}

/// A moment of the closed loop: a slow server delays what waited for it in the recording too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// After the end of this request, by its index; `None`: after the begin of the page.
    pub request: Option<usize>,
    /// So long after it.
    pub delay: Duration,
}

/// What a viewer with a warm cache does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenWarm {
    /// It requests the same as one with a cold cache: nothing was stored.
    Requested,
    /// It takes the response from its cache.
    FromCache,
    /// It asks whether its stored response is still valid, with these further headers (RFC 9110
    /// section 13.1).
    Revalidated(Vec<(String, String)>),
}

/// When the player begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlayerStart {
    /// Where the first request for media was.
    At(After),
    /// When these requests, as indexes, are done.
    Loaded(Vec<usize>),
}

impl PagePlan {
    /// How many requests a viewer with a warm cache takes from it, and how many it revalidates.
    #[must_use]
    pub fn warm_counts(&self) -> (usize, usize) {
        let count =
            |is: fn(&WhenWarm) -> bool| self.requests.iter().filter(|r| is(&r.when_warm)).count();
        (
            count(|warm| *warm == WhenWarm::FromCache),
            count(|warm| matches!(warm, WhenWarm::Revalidated(_))),
        )
    }
}
