//! Connects to one of several addresses, as clients do (RFC 8305): an address that does not answer
//! costs a moment only.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use throng_protocol::participant::ChannelError;

/// How long a client waits for one address before it tries the next as well (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects by `attempt` to the first of `addresses` that accepts: the next one is tried when one
/// fails, or has not answered for [`ATTEMPT_DELAY`].
pub(super) async fn first_to_accept<T, F>(
    addresses: &[IpAddr],
    attempt: impl Fn(IpAddr) -> F,
) -> Result<(T, IpAddr), ChannelError>
where
    F: Future<Output = Result<T, ChannelError>>,
{
    if let [ip] = addresses {
        return Ok((attempt(*ip).await?, *ip));
    }
    let mut waiting = addresses.iter().copied();
    let mut attempts = FuturesUnordered::new();
    let mut failed = ChannelError::Tcp("no address to connect to".into());
    loop {
        match waiting.next() {
            Some(ip) => {
                let connecting = attempt(ip);
                attempts.push(async move { (ip, connecting.await) });
            }
            None if attempts.is_empty() => return Err(failed),
            None => {}
        }
        match tokio::time::timeout(ATTEMPT_DELAY, attempts.next()).await {
            Ok(Some((ip, Ok(connection)))) => return Ok((connection, ip)),
            Ok(Some((_, Err(error)))) => failed = error,
            Ok(None) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    /// The address that accepts first, and when, of [`ONE`] and [`OTHER`], which answer after so
    /// many milliseconds, or never.
    async fn raced(
        one: Option<Result<u64, ChannelError>>,
        other: Option<Result<u64, ChannelError>>,
    ) -> (Result<IpAddr, ChannelError>, Duration) {
        let began = Instant::now();
        let attempt = |ip: IpAddr| {
            let answer = if ip == ONE { one.clone() } else { other.clone() };
            async move {
                let Some(answer) = answer else { return std::future::pending().await };
                tokio::time::sleep(Duration::from_millis(answer?)).await;
                Ok::<(), ChannelError>(())
            }
        };
        let racing = first_to_accept(&[ONE, OTHER], attempt);
        let came = tokio::time::timeout(Duration::from_secs(10), racing).await;
        let came = came.expect("one of them answers");
        (came.map(|((), ip)| ip), began.elapsed())
    }

    fn refused(by: &str) -> ChannelError {
        ChannelError::Tcp(format!("{by} refused"))
    }

    #[tokio::test]
    async fn the_next_address_is_tried_at_once_when_one_refuses() {
        let (ip, took) = raced(Some(Err(refused("one"))), Some(Ok(0))).await;
        assert_eq!(ip, Ok(OTHER));
        assert!(took < ATTEMPT_DELAY, "{took:?}");
        let (error, _) = raced(Some(Err(refused("one"))), Some(Err(refused("other")))).await;
        assert_eq!(error, Err(refused("other")));
    }

    #[tokio::test]
    async fn a_silent_address_costs_a_client_the_attempt_delay() {
        let (ip, took) = raced(None, Some(Ok(0))).await;
        assert_eq!(ip, Ok(OTHER));
        assert!(took >= ATTEMPT_DELAY, "the first address has its time: {took:?}");
    }

    #[tokio::test]
    async fn an_address_that_answers_late_may_still_be_the_first() {
        let (ip, took) = raced(Some(Ok(400)), None).await;
        assert_eq!(ip, Ok(ONE));
        assert!(took >= Duration::from_millis(400), "{took:?}");
    }
}
