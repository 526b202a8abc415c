//! A participant whose requests name a trace, so that the server's spans become parts of it: by the
//! header `traceparent` (W3C Trace Context) of requests of signalling and of upgrades to WebSocket.
//! Downloads of media have none: a browser would ask the server for permission first (CORS).

use std::time::{Duration, Instant};

use http::HeaderValue;
use throng_media::prefetch::Prefetcher;

use crate::participant::{Input, Open, Output, Participant};

/// The name of the header.
const TRACEPARENT: &str = "traceparent";

/// `participant`, in the trace that `traceparent` names; without one if it is no value of a header.
#[must_use]
pub fn traced(participant: Box<dyn Participant>, traceparent: &str) -> Box<dyn Participant> {
    match HeaderValue::from_str(traceparent) {
        Ok(value) => Box::new(Traced { participant, value, text: traceparent.to_owned() }),
        Err(_) => participant,
    }
}

struct Traced {
    participant: Box<dyn Participant>,
    value: HeaderValue,
    /// The same as text.
    text: String,
}

impl Participant for Traced {
    fn handle(&mut self, now: Instant, input: Input<'_>) {
        self.participant.handle(now, input);
    }

    fn poll_output(&mut self, now: Instant) -> Output {
        match self.participant.poll_output(now) {
            Output::Fetch(fetch, mut request) => {
                request.head.headers.insert(TRACEPARENT, self.value.clone());
                Output::Fetch(fetch, request)
            }
            Output::Open(channel, Open::WebSocket { url, protocols, mut headers }) => {
                headers.push((TRACEPARENT.to_owned(), self.text.clone()));
                Output::Open(channel, Open::WebSocket { url, protocols, headers })
            }
            output => output,
        }
    }

    fn receive_lag(&mut self, lag: Duration) {
        self.participant.receive_lag(lag);
    }

    fn prefetch(&self, level: u8, prefetcher: &mut Prefetcher<'_>) {
        match level.checked_sub(1) {
            Some(level) => self.participant.prefetch(level, prefetcher),
            None => prefetcher.value(&*self.participant),
        }
    }
}

#[cfg(test)]
mod tests {
    use throng_observation::{Outcome, Url};

    use super::*;
    use crate::participant::{Channel, FetchId, HttpVersion, Request};

    /// Has these outputs, the last first.
    struct Plays(Vec<Output>);

    impl Participant for Plays {
        fn handle(&mut self, _: Instant, _: Input<'_>) {}

        fn poll_output(&mut self, _: Instant) -> Output {
            self.0.pop().unwrap_or(Output::Ended(Outcome::Completed))
        }
    }

    fn request() -> Box<Request> {
        let (head, ()) = http::Request::post("http://h/whep").body(()).unwrap().into_parts();
        Box::new(Request { head, body: Vec::new(), timeout: Duration::from_secs(1) })
    }

    fn web_socket() -> Open {
        let url = Url::parse("ws://h/").unwrap();
        Open::WebSocket { url, protocols: Vec::new(), headers: Vec::new() }
    }

    #[test]
    fn requests_of_signalling_name_the_trace_and_downloads_of_media_do_not() {
        const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let plays = Plays(vec![
            Output::Download(FetchId(2), request(), HttpVersion::default()),
            Output::Open(Channel(1), web_socket()),
            Output::Fetch(FetchId(1), request()),
        ]);
        let (mut participant, now) = (traced(Box::new(plays), TRACE), Instant::now());
        let Output::Fetch(_, fetched) = participant.poll_output(now) else { panic!("no fetch") };
        assert_eq!(fetched.head.headers[TRACEPARENT], TRACE);
        let Output::Open(_, Open::WebSocket { headers, .. }) = participant.poll_output(now) else {
            panic!("no socket")
        };
        assert_eq!(headers, [(TRACEPARENT.to_owned(), TRACE.to_owned())]);
        let Output::Download(_, download, _) = participant.poll_output(now) else {
            panic!("no download")
        };
        assert!(download.head.headers.is_empty());
        assert!(matches!(participant.poll_output(now), Output::Ended(Outcome::Completed)));
    }

    #[test]
    fn what_is_no_header_leaves_a_participant_as_it_is() {
        let mut participant =
            traced(Box::new(Plays(vec![Output::Fetch(FetchId(1), request())])), "00-\n");
        let now = Instant::now();
        let Output::Fetch(_, fetched) = participant.poll_output(now) else { panic!("no fetch") };
        assert!(fetched.head.headers.is_empty());
    }
}
