//! HTTP/3 at an alternative of the origin (RFC 7838) as Chromium goes there: QUIC has a head start,
//! then the usual connection is tried too, and whichever comes first serves the request.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use throng_observation::units;
use throng_protocol::participant::{ChannelError, HttpVersion, Opening};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::http3::Http3;
use super::origin::{Key, Origin};
use super::pool::{Failed, Lease, Leased, OriginPool, Pool, Shared};
use crate::sockets::Dialer;

/// The head start of QUIC (`kDefaultRTT` in `GetTimeDelayForWaitingJob` of
/// net/quic/quic_session_pool.cc).
const HEAD_START: Duration = Duration::from_millis(300);

/// An alternative from which nothing comes for so long cannot be reached (`kInitialIdleTimeoutSecs`
/// in quiche/quic/core/quic_constants.h).
const UNREACHABLE_AFTER: Duration = Duration::from_secs(5);

/// What came of an attempt; nothing while it lasts.
type Outcome = Option<Result<(Arc<Http3>, Opening), ChannelError>>;

/// An attempt to reach an alternative, which goes on while requests are served otherwise, and the
/// connection that came of it. Dropped, it ends.
pub(super) struct Attempt {
    outcome: watch::Receiver<Outcome>,
    /// A request went over its connection.
    is_used: bool,
    task: AbortHandle,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pool {
    /// A connection for a request to `origin`, which has an alternative at `port` of its host.
    pub(super) async fn lease_alternative(
        &self,
        dialer: &Arc<Dialer>,
        source: Option<IpAddr>,
        (origin, port): (&Origin, u16),
        except: Option<&Failed>,
    ) -> Result<Lease, ChannelError> {
        let usual = Key { origin: origin.clone(), version: HttpVersion::Negotiated };
        let key = Key { origin: origin.clone(), version: HttpVersion::Alternative(port) };
        let kept = self.kept(&key);
        let mut outcome = self.attempt(dialer, source, (&key, port), &kept, except);
        let begun = tokio::time::timeout(HEAD_START, done(&mut outcome)).await;
        let came = match begun {
            Ok(came) => came,
            Err(_) => tokio::select! {
                biased;
                came = done(&mut outcome) => came,
                lease = self.lease_usual(dialer, source, &usual, except) => return lease,
            },
        };
        match came {
            Ok((connection, opening)) => Ok(kept.lease_of_attempt(connection, opening)),
            Err(error) => {
                kept.forget_attempt();
                let mut lease = self.lease_usual(dialer, source, &usual, except).await?;
                lease.opening.alternative_failed = Some(Box::new(error));
                Ok(lease)
            }
        }
    }

    /// The attempt under way, or its connection; a new attempt where there is none that serves.
    fn attempt(
        &self,
        dialer: &Arc<Dialer>,
        source: Option<IpAddr>,
        (key, port): (&Key, u16),
        kept: &OriginPool,
        except: Option<&Failed>,
    ) -> watch::Receiver<Outcome> {
        let mut attempt = kept.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(attempt) = attempt.as_ref().filter(|attempt| attempt.serves(except)) {
            return attempt.outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        let (dialer_of_task, origin) = (Arc::clone(dialer), key.origin.at(port));
        let (tls, number) = (kept.tls(dialer, key), self.number());
        let task = tokio::spawn(async move {
            let opening = Http3::open(&dialer_of_task, source, &origin, tls, number);
            let came =
                tokio::time::timeout(UNREACHABLE_AFTER, opening).await.unwrap_or_else(|_| {
                    let within = units::duration(UNREACHABLE_AFTER);
                    Err(ChannelError::Quic(format!(
                        "no answer from {origin} (UDP) within {within}"
                    )))
                });
            let _ = sender
                .send(Some(came.map(|(connection, opening)| (Arc::new(connection), opening))));
        });
        *attempt =
            Some(Attempt { outcome: outcome.clone(), is_used: false, task: task.abort_handle() });
        outcome
    }
}

impl Attempt {
    /// Whether it goes on, failed without anybody knowing, or has an open connection that is not
    /// `except`.
    fn serves(&self, except: Option<&Failed>) -> bool {
        match &*self.outcome.borrow() {
            Some(Ok((connection, _))) => Shared::Http3(Arc::clone(connection)).serves(except),
            Some(Err(_)) | None => true,
        }
    }
}

impl OriginPool {
    /// The connection of the attempt for one more request.
    fn lease_of_attempt(&self, connection: Arc<Http3>, opening: Opening) -> Lease {
        let connection = Leased::Shared(Shared::Http3(connection));
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        let was_used =
            attempt.as_mut().is_none_or(|attempt| std::mem::replace(&mut attempt.is_used, true));
        if was_used {
            Lease::again(connection)
        } else {
            Lease { connection, is_reused: false, opening }
        }
    }

    /// Its failure is known; the next request for the alternative tries again.
    fn forget_attempt(&self) {
        let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        attempt.take_if(|attempt| matches!(*attempt.outcome.borrow(), Some(Err(_))));
    }
}

/// Waits for what comes of an attempt.
async fn done(
    outcome: &mut watch::Receiver<Outcome>,
) -> Result<(Arc<Http3>, Opening), ChannelError> {
    let ended = || Err(ChannelError::Quic("the attempt was given up".into()));
    match outcome.wait_for(Option::is_some).await {
        Ok(came) => came.clone().unwrap_or_else(ended),
        Err(_) => ended(),
    }
}
