//! JUnit XML, as CI systems read it (the schema of Apache Ant's junitreport task, as Jenkins and
//! GitLab take it): a suite of cases that passed, failed, were skipped, or could not be tried.

use std::fmt::Write as _;

use throng_observation::untrusted::is_harmful;

use crate::{RunOutcome, Summary};

/// A suite of test cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestSuite {
    /// Its name, such as `throng compare`.
    pub name: String,
    /// Its cases.
    pub cases: Vec<TestCase>,
}

/// One test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestCase {
    /// Its name, such as an objective.
    pub name: String,
    /// Its outcome.
    pub outcome: TestOutcome,
    /// What was measured.
    pub detail: String,
}

/// The outcome of a test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// Passed.
    Passed,
    /// Failed, and why, in a sentence.
    Failed(String),
    /// Nothing was decided, and why.
    Skipped(String),
    /// It could not be tried, and why.
    Error(String),
}

impl TestSuite {
    /// The XML document.
    #[must_use]
    pub fn to_xml(&self) -> String {
        let count = |is: fn(&TestOutcome) -> bool| {
            self.cases.iter().filter(|case| is(&case.outcome)).count()
        };
        let (name, all) = (attribute(&self.name), self.cases.len());
        let failures = count(|outcome| matches!(outcome, TestOutcome::Failed(_)));
        let errors = count(|outcome| matches!(outcome, TestOutcome::Error(_)));
        let skipped = count(|outcome| matches!(outcome, TestOutcome::Skipped(_)));
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite \
             name=\"{name}\" tests=\"{all}\" failures=\"{failures}\" errors=\"{errors}\" \
             skipped=\"{skipped}\">\n"
        );
        for case in &self.cases {
            self.case(&mut out, case);
        }
        out.push_str("  </testsuite>\n</testsuites>\n");
        out
    }

    fn case(&self, out: &mut String, case: &TestCase) {
        let _ = writeln!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\">",
            attribute(&self.name.replace(' ', ".")),
            attribute(&case.name)
        );
        let detail = content(&case.detail);
        match &case.outcome {
            TestOutcome::Passed => {
                let _ = writeln!(out, "      <system-out>{detail}</system-out>");
            }
            TestOutcome::Failed(why) => {
                let why = attribute(why);
                let _ = writeln!(
                    out,
                    "      <failure type=\"objective\" message=\"{why}\">{detail}</failure>"
                );
            }
            TestOutcome::Error(why) => {
                let why = attribute(why);
                let _ = writeln!(
                    out,
                    "      <error type=\"invalid\" message=\"{why}\">{detail}</error>"
                );
            }
            TestOutcome::Skipped(why) => {
                let _ = writeln!(
                    out,
                    "      <skipped message=\"{}\"/>\n      <system-out>{detail}</system-out>",
                    attribute(why)
                );
            }
        }
        out.push_str("    </testcase>\n");
    }
}

/// A run as test cases: whether it is valid, each objective, and of a search whether a crowd was
/// served well.
#[must_use]
pub fn of_run(summary: &Summary) -> TestSuite {
    let is_valid = summary.is_valid();
    let case = |name: &str, outcome, detail: &str| TestCase {
        name: name.into(),
        outcome,
        detail: detail.into(),
    };
    let why = || summary.partial_reasons.first().unwrap_or(&summary.headline).clone();
    let validity = if is_valid { TestOutcome::Passed } else { TestOutcome::Error(why()) };
    let mut cases = vec![case("valid run", validity, &summary.headline)];
    if let Some(capacity) = summary.capacity.as_ref().filter(|_| is_valid) {
        let outcome = match summary.outcome {
            RunOutcome::Met => TestOutcome::Passed,
            _ => TestOutcome::Failed(capacity.statement.clone()),
        };
        cases.push(case("capacity", outcome, &capacity.statement));
    }
    cases.extend(summary.objectives.iter().map(|objective| {
        let measured = &objective.measured_text;
        let outcome = match objective.met {
            // What an invalid run measured passes nothing.
            true if is_valid => TestOutcome::Passed,
            true => TestOutcome::Skipped(why()),
            false => {
                TestOutcome::Failed(format!("{}: {measured}", objective.result.replace('_', " ")))
            }
        };
        case(&objective.text, outcome, measured)
    }));
    TestSuite { name: "throng run".into(), cases }
}

/// Text between tags. Line ends stay.
fn content(text: &str) -> String {
    escaped(text, &mut |out, c| out.push(c))
}

/// Text in a quoted attribute, where a parser would turn line ends into blanks (XML 1.0, 3.3.3).
fn attribute(text: &str) -> String {
    escaped(text, &mut |out, c| {
        let _ = write!(out, "&#{};", u32::from(c));
    })
}

/// Escaped for XML 1.0: what is no character of it (2.2: most control characters, U+FFFE and
/// U+FFFF), and what turns the direction of text, as U+FFFD. `>` too, so that no `]]>` is left.
fn escaped(text: &str, line_end: &mut dyn FnMut(&mut String, char)) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => line_end(&mut out, c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if is_harmful(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::*;

    const HOSTILE: [&str; 8] = [
        "<>&\"']]>",
        "</testcase><testcase name=\"x\">",
        "a\0b\u{1}c\u{8}d\u{b}e\u{1f}",
        "\u{fffe}\u{ffff}\u{202e}\u{feff}",
        "line\nline\ttab\r\n",
        "<![CDATA[x]]>",
        "<!-- -- -->",
        "&#0;&#x1f;&unknown;",
    ];

    fn suite(text: &str) -> TestSuite {
        let text = || text.to_owned();
        let outcomes = [
            TestOutcome::Passed,
            TestOutcome::Failed(text()),
            TestOutcome::Skipped(text()),
            TestOutcome::Error(text()),
        ];
        let case = |outcome| TestCase { name: text(), outcome, detail: text() };
        TestSuite { name: text(), cases: outcomes.map(case).to_vec() }
    }

    /// Reads the document with another program's parser: names, and messages of what is not passed.
    fn read(xml: &str) -> (Vec<String>, Vec<String>) {
        let mut reader = Reader::from_str(xml);
        let (mut names, mut messages) = (Vec::new(), Vec::new());
        let mut depth = 0_i32;
        loop {
            let event = reader.read_event().unwrap_or_else(|error| panic!("{error}\n{xml}"));
            let is_start = matches!(event, Event::Start(_));
            match event {
                Event::Start(tag) | Event::Empty(tag) => {
                    depth += i32::from(is_start);
                    let is_case = tag.name().as_ref() == b"testcase";
                    for attribute in tag.attributes() {
                        let attribute = attribute.unwrap();
                        let raw = String::from_utf8(attribute.value.to_vec()).unwrap();
                        let value = quick_xml::escape::unescape(&raw).unwrap().into_owned();
                        match attribute.key.as_ref() {
                            b"name" if is_case => names.push(value),
                            b"message" => messages.push(value),
                            _ => {}
                        }
                    }
                }
                Event::End(_) => depth -= 1,
                Event::Eof => break,
                Event::CData(_) | Event::Comment(_) => panic!("{xml}"),
                _ => {}
            }
        }
        assert_eq!(depth, 0, "{xml}");
        (names, messages)
    }

    fn is_xml_character(c: char) -> bool {
        matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    }

    #[test]
    fn hostile_text_stays_text_and_the_document_well_formed() {
        for text in HOSTILE {
            let xml = suite(text).to_xml();
            assert!(xml.chars().all(is_xml_character), "{xml:?}");
            let (names, messages) = read(&xml);
            assert_eq!((names.len(), messages.len()), (4, 3), "{xml}");
            let kept: String = text
                .chars()
                .map(|c| {
                    if matches!(c, '\n' | '\t') || is_xml_character(c) && !is_harmful(c) {
                        c
                    } else {
                        '\u{fffd}'
                    }
                })
                .collect();
            assert!(
                names.iter().chain(&messages).all(|read| *read == kept),
                "{names:?} of {text:?}"
            );
        }
    }

    #[test]
    fn every_character_gives_a_document() {
        let mut all = String::new();
        for c in ('\0'..='\u{2fff}').chain('\u{fe00}'..='\u{ffff}').chain(['\u{e0041}', char::MAX])
        {
            all.push(c);
        }
        let xml = suite(&all).to_xml();
        assert!(xml.chars().all(is_xml_character));
        assert_eq!(read(&xml).0.len(), 4);
    }

    #[test]
    fn a_run_is_a_case_for_each_objective() {
        use crate::{example, summarise};
        use std::time::Duration;
        let of = |run| of_run(&summarise(&run, &example::objectives(), Duration::ZERO));
        let suite = of(example::degraded());
        assert_eq!(suite.cases.len(), 6);
        assert_eq!(
            (suite.cases[0].name.as_str(), &suite.cases[0].outcome),
            ("valid run", &TestOutcome::Passed)
        );
        let failed = suite
            .cases
            .iter()
            .find(|case| case.name == "connect p99 < 3s")
            .map(|case| &case.outcome);
        assert_eq!(
            failed,
            Some(&TestOutcome::Failed("missed: never, because too many failed".into()))
        );
        let limited = of(example::limited());
        assert!(matches!(limited.cases[0].outcome, TestOutcome::Error(_)));
        assert!(
            limited.cases.iter().all(|case| case.outcome != TestOutcome::Passed),
            "{limited:#?}"
        );
        let search = of(example::searched());
        assert_eq!(search.cases.len(), 2);
        assert!(
            search.cases[1].name == "capacity" && search.cases[1].outcome == TestOutcome::Passed,
            "{search:#?}"
        );
    }

    #[test]
    fn counts_are_of_the_cases() {
        let xml = suite("a").to_xml();
        assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""), "{xml}");
        assert!(TestSuite::default().to_xml().contains("tests=\"0\""));
        read(&TestSuite::default().to_xml());
    }
}
