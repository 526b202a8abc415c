//! Real browsers that join with the crowd.

use std::time::Duration;

use crate::keys::Usual::{Required, Said, Stored};
use crate::keys::{Keyed, Maybe, Whole, keys, text, time};
use crate::target::Target;

/// Most browsers: a large machine decodes for no more.
const BROWSERS_MAX: u64 = 16;
/// The canaries of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Canary {
    /// Number of browsers.
    pub browsers: u16,
    /// When the first one joins, from the start of the run.
    pub at: Duration,
    /// Interval between their joins.
    pub every: Duration,
    /// Path of the executable; `None`: the first known one in `PATH`.
    pub browser: Option<String>,
}

impl Keyed for Canary {
    const NAME: &'static str = "CanaryFile";
    const MEANING: &'static str = "Headless browsers that join with the crowd.";

    keys! {
        /// number of browsers, 1 to 16
        "browsers": browsers = Whole(1, BROWSERS_MAX),
            Required("write under [canary] browsers = 1");
        /// when the first one joins, from the start of the run
        "at": at = time("2s"), Stored;
        /// interval between their joins
        "every": every = time("1s"), Stored;
        /// path of the browser's executable
        "browser": browser = Maybe(text("the path of a program", "/usr/bin/chromium")),
            Said("the first Chromium or Chrome in `PATH`");
    }

    fn usual() -> Self {
        Self { browsers: 1, at: Duration::ZERO, every: Duration::from_secs(1), browser: None }
    }
}

impl Canary {
    /// When browser `number` joins.
    #[must_use]
    pub fn joins_at(&self, number: u16) -> Duration {
        self.at.saturating_add(self.every.saturating_mul(u32::from(number)))
    }
}

/// Why browsers cannot join there; `None` if they can.
pub(crate) fn unsupported(target: &Target) -> Option<&'static str> {
    target.protocol().facts().keeps_browsers_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn canary(url: &str, toml: &str) -> Result<Option<Canary>, String> {
        let text = format!(
            "[target]\nurl = \"{url}\"\n[crowd]\nsize = 3\n[run]\nduration = \"20s\"\n{toml}"
        );
        let scenario = Scenario::parse(&text).map_err(|error| error.to_string())?;
        let again = Scenario::parse(&scenario.to_toml()).map_err(|error| error.to_string())?;
        assert_eq!(again.canary, scenario.canary, "{}", scenario.to_toml());
        Ok(scenario.canary)
    }

    const WHEP: &str = "whep+http://127.0.0.1/whep";

    #[test]
    fn canaries_are_read_and_written_again() {
        assert_eq!(canary(WHEP, ""), Ok(None));
        let usual = canary(WHEP, "[canary]\nbrowsers = 2\n").unwrap().unwrap();
        assert_eq!(
            (usual.browsers, usual.joins_at(0), usual.joins_at(1)),
            (2, Duration::ZERO, Duration::from_secs(1))
        );
        assert_eq!(usual.browser, None);
        let toml =
            "[canary]\nbrowsers = 3\nat = \"4s\"\nevery = \"500ms\"\nbrowser = \"/opt/chrome\"\n";
        let own = canary("janus+ws://127.0.0.1:8188/videoroom/1", toml).unwrap().unwrap();
        assert_eq!(
            (own.joins_at(2), own.browser.as_deref()),
            (Duration::from_secs(5), Some("/opt/chrome"))
        );
    }

    #[test]
    fn browsers_join_the_first_cohort_that_receives_media() {
        let of = |first: &str| {
            let text = format!(
                "[target]\nurl = \"{WHEP}\"\n[[crowd]]\nname = \"first\"\nsize = 1\nurl = \"{first}\"\n\
                 [[crowd]]\nname = \"viewers\"\nsize = 1\n[run]\nduration = \"20s\"\n[canary]\nbrowsers = 1\n"
            );
            Scenario::parse(&text).map_err(|error| error.to_string())
        };
        let chat = of("xmpp+ws://127.0.0.1/ws?room=a@b").unwrap();
        assert_eq!(chat.plan().endpoint_of_browser(0).protocol().name(), "WHEP");
        let refused = of("ws://127.0.0.1/app/stream").unwrap_err();
        assert!(refused.contains("`canary`") && refused.contains("OvenMediaEngine"), "{refused}");
    }

    #[test]
    fn what_no_browser_can_do_says_where_and_what_to_write() {
        let ome = "ws://127.0.0.1:3333/app/stream";
        for (url, toml, expect) in [
            (WHEP, "[canary]\n", "browsers = 1"),
            (WHEP, "[canary]\nbrowser = \"/usr/bin/chromium\"\n", "`canary.browsers` is missing"),
            (WHEP, "[canary]\nbrowsres = 1\n", "did you mean `browsers`"),
            (WHEP, "[canary]\nbrowsers = 0\n", "line 8, column 12"),
            (WHEP, "[canary]\nbrowsers = 17\n", "from 1 to 16"),
            (WHEP, "[canary]\nbrowsers = 1\nat = \"2\"\n", "write at"),
            (WHEP, "[canary]\nbrowsers = 1\nat = \"30s\"\n", "after the run"),
            (WHEP, "[canary]\nbrowsers = 1\nbrowser = \"\"\n", "`canary.browser` is empty"),
            (WHEP, "[canary]\nbrowsers = 1\nbrowsser = \"x\"\n", "did you mean `browser`"),
            (ome, "[canary]\nbrowsers = 1\n", "OvenMediaEngine"),
            ("whip+http://127.0.0.1/whip", "[canary]\nbrowsers = 1\n", "WHIP is send-only"),
        ] {
            let error = canary(url, toml).unwrap_err();
            assert!(error.contains(expect), "{toml}: {error}");
        }
    }
}
