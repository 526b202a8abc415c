//! The subjects of the bus. A run has its own, so that several runs share a bus.

/// Where free workers hear calls.
const CALLS: &str = "throng.calls";

/// The subjects of one run.
#[derive(Clone, Debug)]
pub(crate) struct Subjects {
    run: String,
}

impl Subjects {
    /// Of the run that is named so.
    pub(crate) fn of(run: &str) -> Self {
        Self { run: run.to_owned() }
    }

    /// Calls for workers; not of a run.
    pub(crate) fn calls() -> &'static str {
        CALLS
    }

    /// Orders to the worker that offered itself with `id`.
    pub(crate) fn order(id: &str) -> String {
        format!("throng.worker.{id}.order")
    }

    /// The coordinator's beats.
    pub(crate) fn beats(&self) -> String {
        format!("throng.run.{}.beat", self.run)
    }

    /// Pulses of all workers.
    pub(crate) fn pulses(&self) -> String {
        format!("throng.run.{}.pulse", self.run)
    }

    /// Questions for the coordinator's time.
    pub(crate) fn time(&self) -> String {
        format!("throng.run.{}.time", self.run)
    }

    /// Rows of one worker.
    pub(crate) fn rows(&self, worker: u16) -> String {
        format!("throng.run.{}.rows.{worker}", self.run)
    }

    /// Rows of all workers.
    pub(crate) fn all_rows(&self) -> String {
        format!("throng.run.{}.rows.*", self.run)
    }

    /// How the part of one worker ended, behind all its rows.
    pub(crate) fn end(&self, worker: u16) -> String {
        format!("throng.run.{}.end.{worker}", self.run)
    }

    /// The same of all workers.
    pub(crate) fn all_ends(&self) -> String {
        format!("throng.run.{}.end.*", self.run)
    }

    /// Decisions of the coordinator.
    pub(crate) fn decisions(&self) -> String {
        format!("throng.run.{}.decision", self.run)
    }

    /// The stream in which JetStream keeps rows, ends and decisions.
    pub(crate) fn stream(&self) -> String {
        format!("throng-{}", self.run)
    }

    /// The worker whose rows come with a subject.
    pub(crate) fn worker_of(&self, subject: &str) -> Option<u16> {
        self.part_of(subject)?.strip_prefix("rows.")?.parse().ok()
    }

    /// The worker whose end comes with a subject.
    pub(crate) fn ended_by(&self, subject: &str) -> Option<u16> {
        self.part_of(subject)?.strip_prefix("end.")?.parse().ok()
    }

    /// What follows the run's name in a subject of it.
    fn part_of<'a>(&self, subject: &'a str) -> Option<&'a str> {
        subject.strip_prefix("throng.run.")?.strip_prefix(self.run.as_str())?.strip_prefix('.')
    }
}

/// Whether a text can be a part of subjects: letters, digits and `-`, at most 40.
#[must_use]
pub fn is_run_name(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_known_by_their_worker() {
        let subjects = Subjects::of("a1");
        assert_eq!(subjects.worker_of(&subjects.rows(7)), Some(7));
        for other in
            ["throng.run.a2.rows.7", "throng.run.a1.rows.x", "throng.run.a1.rows.70000", "a"]
        {
            assert_eq!(subjects.worker_of(other), None, "{other}");
        }
        assert_eq!(subjects.ended_by(&subjects.end(3)), Some(3));
        assert_eq!(subjects.ended_by(&subjects.rows(3)), None);
        assert_eq!(subjects.worker_of(&subjects.end(3)), None);
        assert!(
            is_run_name("1764-a") && !is_run_name("a.b") && !is_run_name("") && !is_run_name("*")
        );
    }
}
