//! OvenRtcTester's command line is accepted unchanged: `-url ws://… -n 100 -cint 100 -sint 5000
//! -life 60`.
//!
//! It is read as Go's flag package reads it: one dash or two, a value after `=` or in the next
//! word, whole numbers in any of Go's notations, the last of repeated flags. Its flags are
//! translated into those of `throng view`, which have two dashes and units, so there is one parser
//! and one set of defaults. Without a command the whole line is OvenRtcTester's, which also prints
//! `<Details>` of each client at its end.

/// Rewrites OvenRtcTester flags among `arguments` into those of `throng view`; all other arguments
/// pass unchanged.
pub(crate) fn translate(arguments: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut arguments: Vec<String> = arguments.into_iter().collect();
    let is_view = arguments.get(1).is_some_and(|command| command == "view");
    // `-n` is a flag of both programs, and may come first.
    let is_theirs = |argument: &String| {
        FLAGS.iter().any(|flag| flag.theirs != "n" && flag.is_named(name_of(argument)))
    };
    let is_bare = arguments.get(1).is_some_and(|first| first.starts_with('-'))
        && arguments.iter().skip(1).any(is_theirs);
    if is_bare {
        arguments.insert(1, "view".into());
        if !arguments.iter().any(|argument| argument == "--details") {
            arguments.insert(2, "--details".into());
        }
    }
    match arguments.get_mut(1) {
        Some(only) if only == "-help" => "--help".clone_into(only),
        _ if is_view || is_bare => return translated(arguments),
        _ => {}
    }
    arguments
}

fn translated(arguments: Vec<String>) -> Vec<String> {
    let mut out = Vec::with_capacity(arguments.len());
    // The index of the value of each flag so far.
    let mut said: [Option<usize>; FLAGS.len()] = [None; FLAGS.len()];
    let mut rest = arguments.into_iter();
    while let Some(argument) = rest.next() {
        let place = FLAGS.iter().position(|flag| flag.is_named(name_of(&argument)));
        let Some((flag, said)) =
            place.and_then(|place| Some((FLAGS.get(place)?, said.get_mut(place)?)))
        else {
            out.push(argument);
            continue;
        };
        let attached = argument.split_once('=').map(|(_, value)| value.to_owned());
        let Some(value) = attached.or_else(|| rest.next()).map(|value| flag.value(&value)) else {
            out.push(flag.ours.to_owned());
            continue;
        };
        match said.and_then(|at| out.get_mut(at)) {
            Some(earlier) => *earlier = value,
            None => {
                out.push(flag.ours.to_owned());
                *said = Some(out.len());
                out.push(value);
            }
        }
    }
    out
}

struct Flag {
    theirs: &'static str,
    ours: &'static str,
    /// The unit of a bare number; `None` for a text.
    unit: Option<&'static str>,
    /// The smallest value of throng's flag.
    least: i64,
}

const FLAGS: [Flag; 5] = [
    Flag { theirs: "url", ours: "--url", unit: None, least: 0 },
    Flag { theirs: "n", ours: "-n", unit: Some(""), least: i64::MIN },
    Flag { theirs: "cint", ours: "--every", unit: Some("ms"), least: 0 },
    Flag { theirs: "sint", ours: "--summary", unit: Some("ms"), least: 100 },
    Flag { theirs: "life", ours: "--for", unit: Some("s"), least: i64::MIN },
];

/// The argument without an attached value.
fn name_of(argument: &str) -> &str {
    argument.split('=').next().unwrap_or_default()
}

impl Flag {
    /// Go's flags have one dash or two, and mean the same.
    fn is_named(&self, name: &str) -> bool {
        let bare = name.strip_prefix("--").or_else(|| name.strip_prefix('-'));
        bare == Some(self.theirs)
    }

    /// A bare number gets OvenRtcTester's unit; `-life 0` means forever.
    fn value(&self, value: &str) -> String {
        let number = self.unit.and_then(|unit| Some((unit, whole_number(value)?)));
        match number {
            Some((_, 0)) if self.theirs == "life" => "forever".into(),
            Some((unit, number)) => format!("{}{unit}", number.max(self.least)),
            None => value.to_owned(),
        }
    }
}

/// A whole number as Go's flag package reads it: `strconv.ParseInt` with base 0, so that `0x10`,
/// `0b1`, `0o17`, `017` and `1_000` are numbers too.
fn whole_number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    let has_underscores = digits.contains('_');
    if has_underscores
        && (digits.ends_with('_')
            || digits.contains("__")
            || radix == 10 && digits.starts_with('_'))
    {
        return None;
    }
    i64::from_str_radix(&digits.replace('_', ""), radix)
        .ok()
        .filter(|_| !digits.starts_with(['+', '-']))
        .map(|number| sign * number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &str) {
        let translated = translate(input.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(translated, expect, "{input}");
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
            ("throng -n=100 -url=ws://h/a/s", "throng view --details -n 100 --url ws://h/a/s"),
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
    fn flags_are_read_as_gos_flag_package_reads_them() {
        for (line, expect) in [
            ("throng --url ws://h/a/s", "throng view --details --url ws://h/a/s"),
            ("throng --url=ws://h/a/s --n=3", "throng view --details --url ws://h/a/s -n 3"),
            ("throng --n 3 --url ws://h/a/s", "throng view --details -n 3 --url ws://h/a/s"),
            // A query contains an equals sign too.
            ("throng -url=ws://h/a/s?x=1", "throng view --details --url ws://h/a/s?x=1"),
            (
                "throng --cint=50 --sint 1000 --life=9 -url ws://h/a/s",
                "throng view --details --every 50ms --summary 1000ms --for 9s --url ws://h/a/s",
            ),
            // The last of repeated flags counts.
            ("throng -n 1 -url ws://h/a/s -n 7", "throng view --details -n 7 --url ws://h/a/s"),
            ("throng -url ws://h/a/s --url=ws://h/b/t", "throng view --details --url ws://h/b/t"),
            // Whole numbers in Go's notations.
            ("throng -url ws://h/a/s -n 0x10", "throng view --details --url ws://h/a/s -n 16"),
            ("throng -url ws://h/a/s -n 1_000", "throng view --details --url ws://h/a/s -n 1000"),
            ("throng -url ws://h/a/s -n 010", "throng view --details --url ws://h/a/s -n 8"),
            ("throng -url ws://h/a/s -n +5", "throng view --details --url ws://h/a/s -n 5"),
            // OvenRtcTester accepts 0 clients; throng reports that it needs at least one.
            ("throng -url ws://h/a/s -n 0", "throng view --details --url ws://h/a/s -n 0"),
            (
                "throng -url ws://h/a/s -cint 0",
                "throng view --details --url ws://h/a/s --every 0ms",
            ),
            // The shortest interval that throng supports.
            (
                "throng -url ws://h/a/s -sint 0",
                "throng view --details --url ws://h/a/s --summary 100ms",
            ),
            // Throng's flag has units, and accepts them here too.
            ("throng -url ws://h/a/s -life 2m", "throng view --details --url ws://h/a/s --for 2m"),
            ("throng -url ws://h/a/s -n many", "throng view --details --url ws://h/a/s -n many"),
            ("throng -url ws://h/a/s -n", "throng view --details --url ws://h/a/s -n"),
            ("throng -help", "throng --help"),
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
