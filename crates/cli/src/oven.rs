//! OvenRtcTester's command line, understood as it stands: `-url ws://… -n 100 -cint 100 -sint 5000 -life 60`.
//!
//! Go's flag package takes one dash and milliseconds or seconds without a unit; ours takes two dashes and units. The
//! old words are translated before the real parser sees them, so there is one parser and one set of defaults. Without a
//! command the whole line is OvenRtcTester's, which also prints every client's `<Details>` at its end.

/// Rewrites OvenRtcTester flags among `arguments` into those of `throng view`; everything else passes untouched.
pub(crate) fn translate(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut arguments: Vec<String> = arguments.into_iter().collect();
    let is_view = arguments.get(1).is_some_and(|command| command == "view");
    let is_theirs = |argument: &String| argument.split('=').next().is_some_and(|name| flag(name).is_some());
    // `-n` is a word of both, and may come first.
    let is_bare = arguments.get(1).is_some_and(|first| first.starts_with('-'))
        && arguments.iter().skip(1).any(is_theirs);
    if is_bare {
        arguments.insert(1, "view".into());
        if !arguments.iter().any(|argument| argument == "--details") {
            arguments.insert(2, "--details".into());
        }
    }
    if !is_view && !is_bare {
        return arguments;
    }
    let mut out = Vec::with_capacity(arguments.len());
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument.clone(), None),
        };
        let Some(flag) = flag(&name) else {
            out.push(argument);
            continue;
        };
        out.push(flag.ours.to_owned());
        if let Some(value) = attached.or_else(|| rest.next()) {
            out.push(flag.value(&value));
        }
    }
    out
}

struct Flag {
    theirs: &'static str,
    ours: &'static str,
    unit: &'static str,
}

const FLAGS: [Flag; 4] = [
    Flag { theirs: "-url", ours: "--url", unit: "" },
    Flag { theirs: "-cint", ours: "--every", unit: "ms" },
    Flag { theirs: "-sint", ours: "--summary", unit: "ms" },
    Flag { theirs: "-life", ours: "--for", unit: "s" },
];

fn flag(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.theirs == name)
}

impl Flag {
    /// A bare number gets the unit that OvenRtcTester meant; `-life 0` is for ever.
    fn value(&self, value: &str) -> String {
        match value {
            "0" if self.theirs == "-life" => "forever".into(),
            number if !self.unit.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
                format!("{number}{}", self.unit)
            }
            other => other.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &str) {
        let translated = translate(input.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(translated, expect);
    }

    #[test]
    fn oven_rtc_testers_flags_mean_what_they_meant() {
        check(
            "throng view -url ws://h:3333/app/s -n 100 -cint 100 -sint 5000 -life 60",
            "throng view --url ws://h:3333/app/s -n 100 --every 100ms --summary 5000ms --for 60s",
        );
    }

    #[test]
    fn without_a_command_the_line_is_oven_rtc_testers_in_whatever_order() {
        for (line, expect) in [
            (
                "throng -url=ws://h/a/s -n 5 -life 0",
                "throng view --details --url ws://h/a/s -n 5 --for forever",
            ),
            ("throng -n 100 -url ws://h/a/s", "throng view --details -n 100 --url ws://h/a/s"),
            ("throng -n=100 -url=ws://h/a/s", "throng view --details -n=100 --url ws://h/a/s"),
            (
                "throng -cint 50 -n 2 -url ws://h/a/s",
                "throng view --details --every 50ms -n 2 --url ws://h/a/s",
            ),
            ("throng --plain -url ws://h/a/s", "throng view --details --plain --url ws://h/a/s"),
            ("throng -url ws://h/a/s --details", "throng view --url ws://h/a/s --details"),
        ] {
            check(line, expect);
        }
    }

    #[test]
    fn our_own_flags_and_other_commands_pass_untouched() {
        for line in [
            "throng view ws://h/a/s -n 5 --every 1s --for 10s",
            "throng run -cint",
            "throng run FILE -n -url",
            "throng -n 100 ws://h/a/s",
            "throng --help",
            "throng",
        ] {
            check(line, line);
        }
    }
}
