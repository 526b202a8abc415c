//! What a search found out, as one tells it to a colleague: how many, why not more, and what to
//! change.

use throng_analysis::bottleneck::{Bottleneck, BottleneckVerdict};
use throng_analysis::capacity::CapacityVerdict;
use throng_observation::units::count;

use crate::summary::{RunOutcome, Summary};

/// The number, the cause and the change in a sentence, without conditions and evidence. `None`
/// without a load that failed because of the server.
pub(crate) fn answer(summary: &Summary) -> Option<String> {
    // A target that nobody reached has no capacity.
    let capacity = summary.capacity.as_ref().filter(|_| summary.outcome != RunOutcome::Error)?;
    let is = |verdict: CapacityVerdict| capacity.verdict == verdict.key();
    let failing = capacity.load(capacity.first_failing?);
    let noun = &capacity.noun;
    let with_noun = |load: u32| {
        if capacity.values.is_empty() { count(load.into(), noun) } else { capacity.load(load) }
    };
    let found = summary.bottleneck.as_ref();
    let said = match capacity.users {
        Some(users) if is(CapacityVerdict::Found) => {
            format!("Good service for {} but not for {failing}", with_noun(users))
        }
        None if is(CapacityVerdict::NeverPasses) => {
            format!("Bad service already for {}", with_noun(capacity.first_failing?))
        }
        _ => return None,
    };
    let change = found
        .and_then(|found| found.change.as_deref())
        .map_or_else(String::new, |change| format!("; what to change: {}", in_a_sentence(change)));
    Some(format!("{said}, {}{change}.", because(found)?))
}

/// The cause as a clause; `None` where the generator was the limit, of which no answer follows.
fn because(found: Option<&Bottleneck>) -> Option<String> {
    let unknown = || "for a reason that was not found".to_owned();
    let Some(found) = found else { return Some(unknown()) };
    let title = in_a_sentence(&found.title);
    match found.verdict {
        BottleneckVerdict::Bottleneck | BottleneckVerdict::CoBottleneck => {
            Some(format!("because {title}"))
        }
        BottleneckVerdict::Suspect => Some(format!("perhaps because {title}")),
        BottleneckVerdict::Unattributed => Some(unknown()),
        BottleneckVerdict::NotMonitored => Some("for a reason that was not looked for".to_owned()),
        BottleneckVerdict::NothingFailed | BottleneckVerdict::GeneratorLimited => None,
    }
}

/// The claim of a text, before the colon or semicolon that its explanation follows, to go on within
/// a sentence.
fn in_a_sentence(text: &str) -> String {
    let claim = text.split([':', ';']).next().unwrap_or(text);
    // An explanation within parentheses goes with its parenthesis.
    let claim = match claim.rfind('(') {
        Some(open) if !claim[open..].contains(')') => claim[..open].trim_end(),
        _ => claim,
    };
    let claim = claim.trim_end_matches('.');
    let mut letters = claim.chars();
    match (letters.next(), letters.clone().next()) {
        // Not of an abbreviation, such as CPU.
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => claim.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use throng_analysis::bottleneck::{Bottleneck, BottleneckVerdict};

    use super::{answer, in_a_sentence};
    use crate::{Summary, example, summarise};

    fn because(verdict: BottleneckVerdict) -> Option<String> {
        let summary = summarise(&example::searched(), &[], Duration::ZERO);
        let bottleneck = Bottleneck {
            verdict,
            title: "Thread stage-worker-0 of throng is full: it has one core and no more".into(),
            change: Some(
                "--workers (throng stage), default 1: Not above the number of cores".into(),
            ),
            ..Bottleneck::default()
        };
        answer(&Summary { bottleneck: Some(bottleneck), ..summary })
    }

    #[test]
    fn a_search_is_told_in_a_sentence_of_number_cause_and_change() {
        assert_eq!(
            because(BottleneckVerdict::Bottleneck).as_deref(),
            Some(
                "Good service for 40 viewers but not for 42, because thread stage-worker-0 of throng is full; \
                 what to change: --workers (throng stage), default 1."
            )
        );
    }

    #[test]
    fn a_cause_is_as_certain_as_its_verdict() {
        let suspect = because(BottleneckVerdict::Suspect).unwrap();
        assert!(suspect.contains(", perhaps because thread stage-worker-0"), "{suspect}");
        let unknown = because(BottleneckVerdict::Unattributed).unwrap();
        assert!(unknown.contains(", for a reason that was not found"), "{unknown}");
        let not_watched = because(BottleneckVerdict::NotMonitored).unwrap();
        assert!(not_watched.contains(", for a reason that was not looked for"), "{not_watched}");
        assert_eq!(
            because(BottleneckVerdict::GeneratorLimited),
            None,
            "it says nothing about the server"
        );
    }

    #[test]
    fn a_run_that_searched_nothing_has_no_answer() {
        let plain = summarise(&example::healthy(10, 20), &[], Duration::ZERO);
        assert_eq!(answer(&plain), None);
    }

    #[test]
    fn an_explanation_in_parentheses_is_left_out_whole() {
        let change = "Use more cores (or faster) (the server uses 27 % of them: check what else runs on the host)";
        assert_eq!(in_a_sentence(change), "use more cores (or faster)");
    }

    #[test]
    fn abbreviations_keep_their_case() {
        assert_eq!(in_a_sentence("CPU of the host is full"), "CPU of the host is full");
        assert_eq!(in_a_sentence("Line eth0 is full; see below"), "line eth0 is full");
    }
}
