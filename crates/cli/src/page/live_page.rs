//! The page of one folder, and who looks at it. It is made anew only while somebody looks, when
//! something was written, and never takes more than a twentieth of a core.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use throng_report::html::live::{Part, Sent, Served, parts, to_json};

use super::source::{Source, Stamp};
use crate::console::CliError;
use crate::http_server::{Reader, Reply, Took, document, stream};
use crate::secrets;

/// The least time between the beginnings of two renderings.
const EVERY: Duration = Duration::from_secs(1);
/// The same as a multiple of the time that the last one took.
const TIMES_ITS_COST: u32 = 20;

/// What lets the scripts of pages run; nobody can guess it.
pub(crate) fn new_nonce() -> Result<String, CliError> {
    secrets::random_text().map_err(CliError::invalid)
}

/// What a page with this nonce may do (Content Security Policy): nothing but ask its server.
pub(crate) fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data:; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

/// What a page is made with at a moment.
pub(crate) struct Now<'a> {
    /// `None` before there is a folder.
    pub(crate) source: Option<&'a Source>,
    pub(crate) served: Served<'a>,
    /// Whether the folder may be read; else the page stays as it is.
    pub(crate) is_readable: bool,
}

/// The page of one folder, and who looks at it.
#[derive(Debug, Default)]
pub(crate) struct LivePage {
    made: Option<Made>,
    /// What all who look have.
    sent: Sent,
    readers: Vec<Reader>,
    /// Readers that were slower than the page.
    dropped: u32,
}

/// A page as it was made.
#[derive(Debug)]
struct Made {
    page: Bytes,
    at: Instant,
    cost: Duration,
    stamp: Stamp,
}

impl LivePage {
    /// The whole page.
    pub(crate) fn page(&mut self, now: &Now<'_>) -> Reply {
        self.refresh(now);
        let page = self.made.as_ref().map(|made| made.page.clone()).unwrap_or_default();
        document(StatusCode::OK, page, &policy(now.served.nonce)).into()
    }

    /// A new reader, which gets all parts at once.
    pub(crate) fn events(&mut self, now: &Now<'_>) -> Reply {
        self.refresh(now);
        let (reader, events) = stream();
        if reader.send(&message(&self.sent.all())) == Took::Yes {
            self.readers.push(reader);
        }
        Reply::Events(events)
    }

    /// Sends what has changed to those who look.
    pub(crate) fn each_second(&mut self, now: &Now<'_>) {
        self.readers.retain(|reader| !reader.has_left());
        if self.readers.is_empty() {
            return;
        }
        self.refresh(now);
        let changed = self.sent.changed([("strip", now.served.strip)]);
        let news = (!changed.is_empty()).then(|| message(&changed));
        self.tell(news);
    }

    /// Sends the last to those who look; how many were dropped because they were slow.
    pub(crate) fn end(&mut self, now: &Now<'_>) -> u32 {
        if !self.readers.is_empty() {
            self.make(now);
        }
        self.tell(Some(Bytes::from_static(b"event: end\ndata: 1\n\n")));
        self.readers.clear();
        self.dropped
    }

    /// Whether somebody looks.
    pub(crate) fn has_readers(&self) -> bool {
        self.readers.iter().any(|reader| !reader.has_left())
    }

    fn refresh(&mut self, now: &Now<'_>) {
        let is_due = self.made.as_ref().is_none_or(|made| is_due(made.at.elapsed(), made.cost));
        if is_due && self.made.as_ref().map(|made| &made.stamp) != Some(&stamp(now)) {
            self.make(now);
        }
    }

    fn make(&mut self, now: &Now<'_>) {
        if !now.is_readable && self.made.is_some() {
            return;
        }
        let at = Instant::now();
        // Before it is read: what is written meanwhile is news.
        let stamp = if now.is_readable { stamp(now) } else { Stamp::default() };
        let rendered = match now.source.filter(|_| now.is_readable) {
            Some(source) => source.render(&now.served),
            None => Ok(now.served.message("throng is about to begin", "Its page comes by itself.")),
        };
        let earlier = self.made.take().map(|made| made.page);
        let page: Bytes = match (rendered, earlier) {
            (Ok(page), _) => page.into(),
            // What was read before is better than none.
            (Err(_), Some(earlier)) => earlier,
            (Err(why), None) => now.served.message("This cannot be shown", &why).into(),
        };
        let news = std::str::from_utf8(&page).ok().and_then(|page| {
            let changed = self.sent.changed(parts(page));
            (!changed.is_empty()).then(|| message(&changed))
        });
        self.tell(news);
        self.made = Some(Made { page, at, cost: at.elapsed(), stamp });
    }

    fn tell(&mut self, news: Option<Bytes>) {
        let Some(news) = news else { return };
        let mut slow = 0;
        self.readers.retain(|reader| {
            let took = reader.send(&news);
            slow += u32::from(took == Took::TooSlow);
            took == Took::Yes
        });
        self.dropped += slow;
    }
}

fn stamp(now: &Now<'_>) -> Stamp {
    now.source.map(Source::stamp).unwrap_or_default()
}

/// Whether a page that was begun so long ago, and took so much time, may be made again.
fn is_due(age: Duration, cost: Duration) -> bool {
    age >= EVERY.max(cost.saturating_mul(TIMES_ITS_COST))
}

fn message(parts: &[Part<'_>]) -> Bytes {
    format!("event: parts\ndata: {}\n\n", to_json(parts)).into()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use hyper::body::Body as _;
    use throng_observation::run::RunInfo;
    use throng_store::RunFolder;

    use super::*;

    fn now<'a>(source: Option<&'a Source>, strip: &'a str) -> Now<'a> {
        Now { source, served: Served { nonce: "n0nce", strip }, is_readable: true }
    }

    /// The messages that wait for a reader.
    fn waiting(reply: Reply) -> Vec<String> {
        let Reply::Events(stream) = reply else { panic!("no events") };
        let mut events = pin!(stream.into_body());
        let mut context = Context::from_waker(Waker::noop());
        let mut all = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = events.as_mut().poll_frame(&mut context) {
            all.push(String::from_utf8(frame.into_data().unwrap().into()).unwrap());
        }
        all
    }

    #[test]
    fn a_page_takes_a_twentieth_of_a_core_at_most() {
        let ms = Duration::from_millis;
        for (age, cost, expect) in [
            (999, 1, false),
            (1_000, 1, true),
            (1_000, 50, true),
            (1_999, 100, false),
            (2_000, 100, true),
        ] {
            assert_eq!(is_due(ms(age), ms(cost)), expect, "{age} {cost}");
        }
        assert!(!is_due(Duration::from_secs(9), Duration::MAX));
    }

    #[test]
    fn who_connects_gets_all_parts_and_then_what_changed() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        drop(RunFolder::create(&run, &RunInfo::default()).unwrap());
        let source = Source::Run(run);
        let mut page = LivePage::default();
        let first = page.events(&now(Some(&source), "<p>1</p>"));
        page.each_second(&now(Some(&source), "<p>1</p>"));
        page.each_second(&now(Some(&source), "<p>2</p>"));
        assert_eq!(page.end(&now(Some(&source), "<p>2</p>")), 0);
        let told = waiting(first);
        assert!(told[0].starts_with("event: parts\ndata: [[\"answer\","), "{}", told[0]);
        assert!(told[0].contains("\"glossary\"") && told[0].contains("<p>1</p>"));
        assert_eq!(told[1], "event: parts\ndata: [[\"strip\",\"<p>2</p>\"]]\n\n");
        assert_eq!(told.last().map(String::as_str), Some("event: end\ndata: 1\n\n"));
    }

    #[test]
    fn slow_readers_are_dropped_and_counted_and_left_ones_are_not() {
        let mut page = LivePage::default();
        let _slow = page.events(&now(None, ""));
        drop(page.events(&now(None, "")));
        assert!(page.has_readers());
        for second in 0..20 {
            page.each_second(&now(None, &format!("<p>{second}</p>")));
        }
        assert!(!page.has_readers());
        assert_eq!(page.end(&now(None, "")), 1);
    }

    #[test]
    fn before_the_folder_and_where_it_cannot_be_read_the_page_says_so() {
        let body =
            |page: &LivePage| String::from_utf8(page.made.as_ref().unwrap().page.to_vec()).unwrap();
        let mut page = LivePage::default();
        page.page(&now(None, ""));
        assert!(body(&page).contains("about to begin"));
        let gone = Source::Run("/nowhere/<b>".into());
        let mut page = LivePage::default();
        page.page(&now(Some(&gone), ""));
        assert!(body(&page).contains("/nowhere/&lt;b&gt;"), "{}", body(&page));
    }
}
