//! The page of one folder, and who looks at it. It is made anew only while somebody looks, when
//! something was written, and never takes more than a twentieth of a core.

use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use throng_report::html::live::{Part, Sent, Served, parts, to_json};

use super::source::{Source, Stamp};
use crate::console::CliError;
use crate::http_server::{Reader, Reply, SendOutcome, document, stream};
use crate::secrets;

/// The least time between the beginnings of two renderings.
const EVERY: Duration = Duration::from_secs(1);
/// The same as a multiple of the time that the last one took.
const TIMES_ITS_COST: u32 = 20;
/// After so many seconds without news readers are told nothing, in a comment: proxies keep the
/// connection, and who has left is noticed.
const SILENT_MAX_S: u32 = 15;

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
    /// All of it as a message, made when somebody asks.
    whole: Option<Bytes>,
    readers: Vec<Reader>,
    /// Seconds since they were told anything.
    silent_s: u32,
    /// Readers that were slower than the page.
    dropped: u32,
}

/// A page as it was made.
#[derive(Debug)]
struct Made {
    page: Bytes,
    at: Instant,
    cost: Duration,
    stamp: (Stamp, bool),
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
        let whole = self.whole.get_or_insert_with(|| message(&self.sent.all()));
        if reader.send(whole) == SendOutcome::Yes {
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
        self.silent_s += 1;
        self.refresh(now);
        let news = self.news([("strip", now.served.strip)]);
        self.tell(news);
        if self.silent_s >= SILENT_MAX_S {
            self.tell(Some(Bytes::from_static(b":\n\n")));
        }
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

    /// Whether it can be forgotten: nobody looks, and what it cost is made up for.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_readers() && self.is_due()
    }

    fn is_due(&self) -> bool {
        self.made.as_ref().is_none_or(|made| is_due(made.at.elapsed(), made.cost))
    }

    fn refresh(&mut self, now: &Now<'_>) {
        if self.is_due() && self.made.as_ref().map(|made| &made.stamp) != Some(&stamp(now)) {
            self.make(now);
        }
    }

    fn make(&mut self, now: &Now<'_>) {
        if !now.is_readable && self.made.is_some() {
            return;
        }
        let at = Instant::now();
        // Before it is read: what is written meanwhile is news.
        let stamp = if now.is_readable { stamp(now) } else { Default::default() };
        let soon = |title| Ok(now.served.message(title, "The page appears here by itself."));
        let rendered = match now.source {
            Some(source) if now.is_readable => source.render(&now.served),
            Some(_) => soon("throng is about to end"),
            None => soon("throng is about to begin"),
        };
        let earlier = self.made.take().map(|made| made.page);
        let page: Bytes = match (rendered, earlier) {
            (Ok(page), _) => page.into(),
            // What was read before is better than none.
            (Err(_), Some(earlier)) => earlier,
            (Err(why), None) => now.served.message("This cannot be shown", &why).into(),
        };
        let news = std::str::from_utf8(&page).ok().and_then(|page| self.news(parts(page)));
        self.tell(news);
        self.made = Some(Made { page, at, cost: at.elapsed(), stamp });
    }

    /// Those of `parts` that are not as they were sent, as a message.
    fn news<'p>(&mut self, parts: impl IntoIterator<Item = Part<'p>>) -> Option<Bytes> {
        let changed = self.sent.changed(parts);
        if changed.is_empty() {
            return None;
        }
        self.whole = None;
        Some(message(&changed))
    }

    fn tell(&mut self, news: Option<Bytes>) {
        let Some(news) = news else { return };
        self.silent_s = 0;
        let mut slow = 0;
        self.readers.retain(|reader| {
            let took = reader.send(&news);
            slow += u32::from(took == SendOutcome::TooSlow);
            took == SendOutcome::Yes
        });
        self.dropped += slow;
    }
}

fn stamp(now: &Now<'_>) -> (Stamp, bool) {
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
    use throng_observation::RunTime;
    use throng_observation::run::{Ending, RunInfo};
    use throng_report::html::live::ServedBy;
    use throng_store::RunFolder;

    use super::super::pages::Pages;
    use super::*;

    fn now<'a>(source: Option<&'a Source>, strip: &'a str) -> Now<'a> {
        let served = Served { nonce: "n0nce", strip, by: ServedBy::Run };
        Now { source, served, is_readable: true }
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
    fn who_looks_at_a_run_of_an_experiment_gets_its_end_and_of_a_folder_what_was_there() {
        for (by, gets_its_end) in [(ServedBy::Cell, true), (ServedBy::Serve, false)] {
            let folder = tempfile::tempdir().unwrap();
            let run = folder.path().join("run");
            std::fs::create_dir(&run).unwrap();
            let mut pages = Pages::new(by).unwrap();
            let reader = pages.answer("run", Source::Run(run.clone()), "events").unwrap();
            RunFolder::create(&run, &RunInfo::default())
                .unwrap()
                .finish(Ending::Complete, RunTime(5_000_000))
                .unwrap();
            assert_eq!(pages.end(), 0);
            let told = waiting(reader);
            assert!(told[0].contains("about to begin"), "{}", told[0]);
            let has_sections = told.iter().any(|message| message.contains("\"glossary\""));
            assert_eq!(has_sections, gets_its_end, "{by:?}: {told:?}");
        }
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
    fn all_parts_are_written_once_for_all_who_connect_until_one_changes() {
        let mut page = LivePage::default();
        let whole = |page: &LivePage| page.whole.as_ref().unwrap().as_ptr();
        let _first = page.events(&now(None, "<p>1</p>"));
        let first = whole(&page);
        let _second = page.events(&now(None, "<p>1</p>"));
        assert_eq!(whole(&page), first);
        page.each_second(&now(None, "<p>2</p>"));
        assert!(page.whole.is_none());
        let told = waiting(page.events(&now(None, "<p>2</p>")));
        assert!(told[0].contains("<p>2</p>"), "{told:?}");
    }

    #[test]
    fn readers_of_a_page_that_stays_the_same_are_told_so_at_times() {
        let mut page = LivePage::default();
        let reader = page.events(&now(None, ""));
        for _ in 0..2 * SILENT_MAX_S {
            page.each_second(&now(None, ""));
        }
        let told = waiting(reader);
        assert_eq!(told[1..], [":\n\n", ":\n\n"], "{told:?}");
    }

    #[test]
    fn a_page_is_not_forgotten_before_its_cost_is_made_up_for() {
        let mut page = LivePage::default();
        assert!(page.is_idle());
        page.page(&now(None, ""));
        page.made.as_mut().unwrap().cost = Duration::MAX;
        assert!(!page.is_idle());
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
        let mut page = LivePage::default();
        page.page(&Now { is_readable: false, ..now(Some(&gone), "") });
        assert!(body(&page).contains("about to end"));
    }
}
