//! The paths of the page of one folder, and of the runs below it, if it is a matrix.

use std::sync::{Arc, TryLockError};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response, StatusCode};
use throng_report::html::live::{Served, ServedBy};

use super::control::{Order, order};
use super::live_page::{LivePage, Now, new_nonce};
use super::pages::Pages;
use super::source::Source;
use super::{Commanded, locked};
use crate::console::{CliError, say};
use crate::http_server::{Reply, Site, is_read, only_read, text};

/// The page of one folder, at the root of its server.
pub(crate) struct RunSite {
    page: LivePage,
    /// Those of a matrix's runs.
    runs: Pages,
    nonce: String,
    of: Of,
}

/// Whose folder it is.
enum Of {
    /// A command of this process, which can be asked to end.
    Command(Arc<Commanded>),
    /// Any process's.
    Folder(Source),
}

impl RunSite {
    /// Of a command of this process.
    pub(super) fn of_command(command: Arc<Commanded>) -> Result<Self, CliError> {
        Self::new(Of::Command(command))
    }

    /// Of a folder.
    pub(crate) fn of_folder(source: Source) -> Result<Self, CliError> {
        Self::new(Of::Folder(source))
    }

    fn new(of: Of) -> Result<Self, CliError> {
        let by = match &of {
            Of::Command(_) => ServedBy::Cell,
            Of::Folder(_) => ServedBy::Serve,
        };
        Ok(Self { page: LivePage::default(), runs: Pages::new(by)?, nonce: new_nonce()?, of })
    }

    /// Does something with the page as it is now.
    fn now<T>(&mut self, act: impl FnOnce(&mut LivePage, &Now<'_>) -> T) -> T {
        let Self { page, nonce, of, .. } = self;
        match of {
            Of::Folder(source) => {
                let served = Served { nonce, strip: "", by: ServedBy::Serve };
                act(page, &Now { source: Some(source), served, is_readable: true })
            }
            Of::Command(command) => {
                let (source, strip) = (locked(&command.source).clone(), (command.strip)());
                // Held until the page is made.
                let apart = command.apart.try_lock();
                let is_readable = !matches!(apart, Err(TryLockError::WouldBlock));
                let served = Served { nonce, strip: &strip, by: command.by };
                act(page, &Now { source: source.as_ref(), served, is_readable })
            }
        }
    }

    /// A page of a run of a matrix, or what changes of it.
    fn below(&mut self, path: &str) -> Option<Reply> {
        let source = match &self.of {
            Of::Command(command) => locked(&command.source).clone()?,
            Of::Folder(source) => source.clone(),
        };
        let (run, source, what) = source.run_at(path.strip_prefix('/')?)?;
        self.runs.answer(run, source, what)
    }

    fn ordered(&self, request: &Request<()>) -> Response<Full<Bytes>> {
        let Of::Command(command) = &self.of else { return only_read() };
        match order(request, &command.token) {
            Ok(Order::Stop) => {
                if command.interrupt.set_beside() {
                    say("its page asked it to end");
                }
                let help = "It ends, and reports; a second Ctrl-C ends it at once.\n";
                text(StatusCode::ACCEPTED, help.into())
            }
            Ok(Order::Mark(_)) if !command.by.keeps_marks() => {
                let help = "Marks are kept by a run: throng run, view, find and watch.\n";
                text(StatusCode::NOT_FOUND, help.into())
            }
            Ok(Order::Mark(mark)) => {
                if command.mark(mark) {
                    text(StatusCode::ACCEPTED, "Marked.\n".into())
                } else {
                    let help = "Too many marks at once; ask again in a second.\n";
                    text(StatusCode::TOO_MANY_REQUESTS, help.into())
                }
            }
            Err((status, help)) => text(status, help.into()),
        }
    }
}

impl Site for RunSite {
    const GIVES_WAY: bool = true;

    fn answer(&mut self, request: &Request<()>) -> Reply {
        if !is_read(request) {
            return self.ordered(request).into();
        }
        match request.uri().path() {
            "/" => self.now(LivePage::page),
            "/events" => self.now(LivePage::events),
            path => self.below(path).unwrap_or_else(|| {
                text(StatusCode::NOT_FOUND, "The page is at /.\n".into()).into()
            }),
        }
    }

    fn each_second(&mut self) {
        self.now(LivePage::each_second);
        self.runs.each_second();
    }

    fn end(&mut self) {
        say_dropped(self.now(LivePage::end) + self.runs.end());
    }
}

/// Says how many readers were dropped.
pub(crate) fn say_dropped(count: u32) {
    if count > 0 {
        say(&format!("the page was dropped {count} times because a browser read it too slowly"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use hyper::header;

    use super::*;
    use crate::console::Interrupt;

    fn site() -> (RunSite, Arc<Commanded>) {
        site_of(ServedBy::Run)
    }

    fn site_of(by: ServedBy) -> (RunSite, Arc<Commanded>) {
        let command = Arc::new(Commanded {
            token: "t0ken".into(),
            interrupt: Interrupt::default(),
            strip: Box::new(String::new),
            source: Mutex::new(None),
            marks: Mutex::default(),
            apart: Mutex::new(()),
            by,
        });
        (RunSite::of_command(Arc::clone(&command)).unwrap(), command)
    }

    fn asked(site: &mut RunSite, method: &str, uri: &str, token: &str) -> Response<Full<Bytes>> {
        let request = Request::builder().method(method).uri(uri).header("throng-token", token);
        match site.answer(&request.body(()).unwrap()) {
            Reply::Whole(response) => response,
            Reply::Later(_) | Reply::Events(_) => panic!("no page of one piece"),
        }
    }

    #[test]
    fn a_page_may_do_nothing_but_ask_its_server_and_nobody_keeps_it() {
        let (mut site, _) = site();
        let response = asked(&mut site, "GET", "/", "");
        assert_eq!(response.status(), 200);
        let of = |name: header::HeaderName| response.headers()[name].to_str().unwrap().to_owned();
        let policy = of(header::CONTENT_SECURITY_POLICY);
        assert!(policy.contains("default-src 'none'; script-src 'nonce-"), "{policy}");
        assert!(policy.contains("connect-src 'self'") && !policy.contains("script-src 'unsafe"));
        assert_eq!(of(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(of(header::CACHE_CONTROL), "no-store");
        assert!(!response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
        for (method, uri, expect) in
            [("GET", "/../etc/passwd", 404_u16), ("OPTIONS", "/stop", 403), ("PUT", "/", 403)]
        {
            assert_eq!(asked(&mut site, method, uri, "").status(), expect, "{method} {uri}");
        }
    }

    #[test]
    fn who_has_the_token_ends_and_marks_the_command() {
        let (mut site, command) = site();
        assert_eq!(asked(&mut site, "POST", "/stop", "wrong").status(), 403);
        assert!(!command.interrupt.is_set());
        assert_eq!(asked(&mut site, "POST", "/mark?text=now", "t0ken").status(), 202);
        assert_eq!(*locked(&command.marks), ["now"]);
        assert_eq!(asked(&mut site, "POST", "/stop", "t0ken").status(), 202);
        assert!(command.interrupt.is_set());
        for _ in 0..20 {
            asked(&mut site, "POST", "/mark?text=now", "t0ken");
        }
        assert_eq!(locked(&command.marks).len(), 16);
        assert_eq!(asked(&mut site, "POST", "/mark?text=now", "t0ken").status(), 429);
    }

    #[test]
    fn an_experiment_ends_by_its_token_keeps_no_marks_and_has_its_runs_below_it() {
        let (mut site, command) = site_of(ServedBy::Experiment);
        let run = "/cells/01_a/1/";
        assert_eq!(asked(&mut site, "GET", run, "").status(), 404, "no folder yet");
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("cells/01_a/1")).unwrap();
        *locked(&command.source) = Some(Source::Matrix(folder.path().to_owned()));
        assert_eq!(asked(&mut site, "GET", run, "").status(), 200);
        assert_eq!(asked(&mut site, "GET", "/cells/01_a/2/", "").status(), 404);
        assert_eq!(asked(&mut site, "POST", "/mark?text=now", "t0ken").status(), 404);
        assert!(locked(&command.marks).is_empty());
        assert_eq!(asked(&mut site, "POST", "/cells/01_a/1/stop", "t0ken").status(), 404);
        assert!(!command.interrupt.is_set());
        assert_eq!(asked(&mut site, "POST", "/stop", "t0ken").status(), 202);
        assert!(command.interrupt.is_set());
    }

    #[test]
    fn a_folder_alone_can_only_be_read_and_one_in_use_is_left_alone() {
        let source = Source::Run("/nowhere".into());
        let mut folder = RunSite::of_folder(source).unwrap();
        assert_eq!(asked(&mut folder, "POST", "/stop", "").status(), 405);
        let (mut site, command) = site();
        *locked(&command.source) = Some(Source::Run("/nowhere".into()));
        let apart = locked(&command.apart);
        assert!(!site.now(|_, now| now.is_readable));
        drop(apart);
        assert!(site.now(|_, now| now.is_readable && now.source.is_some()));
    }
}
