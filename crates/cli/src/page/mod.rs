//! `--serve`: the page of a command while it runs. It is made from what the command writes, as the
//! report is, and only while somebody looks; so `throng serve` makes it of other processes' folders
//! too.

mod control;
mod live_page;
mod pages;
mod run_site;
mod source;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use throng_report::html::live::ServedBy;

use crate::background::Background;
use crate::console::{CliError, Interrupt, say};
use crate::http_server::Listener;
use crate::secrets;
pub(crate) use live_page::{new_nonce, policy};
pub(crate) use pages::Pages;
pub(crate) use run_site::{RunSite, say_dropped};
pub(crate) use source::{Source, Stamp, stamp_of};

/// Most marks that wait for the command, which looks a few times a second.
const MARKS_MAX: usize = 16;

/// What makes the strip at the top of a page, as it is now.
pub(crate) type Strip = Box<dyn Fn() -> String + Send + Sync>;

/// The page of a command.
pub(crate) struct Page {
    command: Arc<Commanded>,
    url: String,
    _server: Background,
}

impl Page {
    /// Serves it, and says where, with the token that ends the command by `interrupt` and marks it.
    pub(crate) fn start(
        port: Listener,
        strip: Strip,
        interrupt: &Interrupt,
        by: ServedBy,
    ) -> Result<Self, CliError> {
        let token = secrets::random_text().map_err(CliError::invalid)?;
        let url = format!("http://{}/#token={token}", port.authority());
        say(&format!("page        {url}"));
        let command = Arc::new(Commanded {
            token,
            interrupt: interrupt.clone(),
            strip,
            source: Mutex::new(None),
            marks: Mutex::new(Vec::new()),
            apart: Mutex::new(()),
            by,
        });
        let site = RunSite::of_command(Arc::clone(&command))?;
        Ok(Self { command, url, _server: port.serve("page", site)? })
    }

    /// Where it is, with its token.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What it is made from.
    pub(crate) fn shows(&self, source: Source) {
        *locked(&self.command.source) = Some(source);
    }

    /// What was marked since the last call.
    pub(crate) fn marks(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.command.marks))
    }

    /// Does what needs the folder for itself: a reader would keep the database from becoming one
    /// file.
    pub(crate) fn apart<T>(&self, act: impl FnOnce() -> T) -> T {
        let _apart = locked(&self.command.apart);
        act()
    }
}

/// What the page and its command share.
struct Commanded {
    /// Who has it may end and mark the command.
    token: String,
    interrupt: Interrupt,
    strip: Strip,
    /// `None` until there is a folder.
    source: Mutex<Option<Source>>,
    marks: Mutex<Vec<String>>,
    /// Held by whoever uses the folder.
    apart: Mutex<()>,
    /// What kind of command it is.
    by: ServedBy,
}

impl Commanded {
    /// Keeps a mark for the command; `false` if too many wait.
    fn mark(&self, text: String) -> bool {
        let mut marks = locked(&self.marks);
        let has_room = marks.len() < MARKS_MAX;
        if has_room {
            marks.push(text);
        }
        has_room
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
