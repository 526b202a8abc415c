//! What people marked while the run went on.

use throng_observation::run::{MARK_EVENT, RunData};

use super::markup::titled_table;

/// The section of the marks; nothing without one.
pub(crate) fn render(run: &RunData) -> String {
    let marks = run.events.iter().filter(|event| event.kind == MARK_EVENT);
    let rows: Vec<Vec<String>> = marks
        .map(|mark| vec![format!("{:.1} s", mark.at.as_secs_f64()), mark.detail.to_string()])
        .collect();
    titled_table("<h2>Marks</h2>", &["at", "what"], &rows)
}

#[cfg(test)]
mod tests {
    use throng_observation::RunTime;
    use throng_observation::run::EventRow;

    use super::*;

    #[test]
    fn marks_are_shown_with_their_moment_and_stay_text() {
        let mut run = RunData::default();
        assert_eq!(render(&run), "");
        run.events.push(EventRow {
            at: RunTime(12_300_000),
            participant: None,
            kind: MARK_EVENT.into(),
            count: 1,
            detail: "<b>restarted</b>".into(),
        });
        let section = render(&run);
        assert!(section.contains("12.3 s") && section.contains("&lt;b&gt;restarted"), "{section}");
    }
}
