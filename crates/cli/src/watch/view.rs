//! The live display of a watch: a full screen on a terminal, a line each few seconds elsewhere.

use std::time::Duration;

use throng_observation::units::percent;

use super::figures::Figures;
use super::screen;
use crate::console::{Screen, can_be_drawn_on, say};

/// How often a plain line is printed.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// How figures are shown.
pub(super) enum View {
    Full { screen: Screen, title: String },
    Lines { next: Duration, printed: usize },
    Quiet,
}

impl View {
    pub(super) fn new(is_plain: bool, is_quiet: bool, title: &str) -> Self {
        if is_quiet {
            return Self::Quiet;
        }
        if !is_plain && can_be_drawn_on() {
            match Screen::take() {
                Ok(screen) => return Self::Full { screen, title: title.to_owned() },
                Err(error) => say(&format!("no full-screen view on this terminal: {error}")),
            }
        }
        Self::Lines { next: LINE_EVERY, printed: 0 }
    }

    /// Shows the current figures; `true` when the user wants to end.
    pub(super) fn show(&mut self, figures: &Figures, at: Duration) -> bool {
        match self {
            Self::Full { screen, title } => {
                screen.draw(|frame| screen::draw(frame, title, figures, at));
                screen.wants_to_leave()
            }
            Self::Lines { next, printed } => {
                if at >= *next {
                    *next = at + LINE_EVERY;
                    for event in figures.events.iter().skip(*printed) {
                        say(&format!("{:>5.0} s  {}", event.at.as_secs_f64(), event.detail));
                    }
                    *printed = figures.events.len();
                    say(&line(figures, at));
                }
                false
            }
            Self::Quiet => false,
        }
    }
}

pub(super) fn line(figures: &Figures, at: Duration) -> String {
    let now = |metric: &str| figures.one(metric).map_or(0.0, |figure| figure.now);
    let hottest: Vec<_> = figures
        .threads()
        .into_iter()
        .take(3)
        .map(|thread| format!("{} {}", thread.shown("thread"), percent(thread.now)))
        .collect();
    let host = figures.one("host.cpu.busy");
    format!(
        "{:>5.0} s  host {:.2} of {:.0} cores, waiting for CPU {}, for I/O {}  threads: {}",
        at.as_secs_f64(),
        host.map_or(0.0, |figure| figure.now),
        host.and_then(|figure| figure.of.limit).unwrap_or(0.0),
        percent(now("host.pressure.cpu.some")),
        percent(now("host.pressure.io.some")),
        if hottest.is_empty() { "none ran".into() } else { hottest.join(", ") },
    )
}
