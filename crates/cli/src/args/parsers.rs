//! Values of the command line, with the ranges that help texts name.

use std::time::Duration;

use throng_scenario::Network;
use throng_scenario::units::{self, UnitError};

use crate::console::CliError;

/// A length of time such as `10s`, the value of `flag`.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration, CliError> {
    with_unit(flag, text, units::duration)
}

/// A value with a unit, such as `5/s`, the value of `flag`.
pub(crate) fn with_unit<T>(
    flag: &str,
    text: &str,
    parse: fn(&str) -> Result<T, UnitError>,
) -> Result<T, CliError> {
    parse(text).map_err(|error| CliError::usage(format!("{flag}: {error}")))
}

/// Networks that may get load too, the values of `--allow-target`.
pub(crate) fn networks(texts: &[String]) -> Result<Vec<Network>, CliError> {
    let network = |text: &String| {
        text.parse::<Network>()
            .map_err(|error| CliError::usage(format!("--allow-target {text}: {error}")))
    };
    texts.iter().map(network).collect()
}

/// A number of viewers.
pub(super) fn viewers(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=1_000_000).contains(count))
        .ok_or_else(|| "write a whole number from 1 to 1000000, such as 50".into())
}

/// A crowd that is sized and not sent.
pub(super) fn sized_crowd(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=100_000_000).contains(count))
        .ok_or_else(|| "write a whole number from 1 to 100000000, such as 10000".into())
}

/// A share of a resource, as a number: `0.75`.
pub(super) fn utilisation(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number, such as 0.75".to_owned())?;
    if (0.05..=1.0).contains(&number) { Ok(number) } else { Err("must be from 0.05 to 1".into()) }
}

/// How old something is: `12h`, `30d`, `4w`.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "write a time such as 12h, 30d or 4w".to_owned();
    let (number, hours) = match text.trim().char_indices().next_back() {
        Some((at, 'h')) => (text.trim().get(..at), 1),
        Some((at, 'd')) => (text.trim().get(..at), 24),
        Some((at, 'w')) => (text.trim().get(..at), 7 * 24),
        _ => (None, 0),
    };
    let number: u64 = number.and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    number.checked_mul(hours * 3_600).map(Duration::from_secs).ok_or_else(wrong)
}

/// A label of a run: a word.
pub(super) fn label(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-+:/=@#".contains(c);
    if (1..=40).contains(&text.chars().count()) && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("a label has 1 to 40 letters, digits and ._-+:/=@#".into())
}

/// A label of a name in a cluster (RFC 1123).
fn is_name_label(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(is_plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The name of a fleet in a cluster: a Service begins with a letter (RFC 1035), and a worker's host
/// is `NAME-workers-4095`, which must be a label as well.
pub(super) fn fleet_name(text: &str) -> Result<String, String> {
    let begins_well = text.starts_with(|c: char| c.is_ascii_lowercase());
    if is_name_label(text) && begins_well && text.len() <= 40 {
        return Ok(text.to_owned());
    }
    Err("write 1 to 40 of a to z, 0 to 9 and -, the first a letter, the last not -".into())
}

/// The name of a namespace of a cluster.
pub(super) fn namespace(text: &str) -> Result<String, String> {
    let help = || "write 1 to 63 of a to z, 0 to 9 and -, neither first nor last -".to_owned();
    is_name_label(text).then(|| text.to_owned()).ok_or_else(help)
}

/// The name of a Secret of a cluster: labels between dots.
pub(super) fn secret_name(text: &str) -> Result<String, String> {
    let is_good = text.len() <= 253 && text.split('.').all(is_name_label);
    let help = || "write the name of a Secret: a to z, 0 to 9, - and .".to_owned();
    is_good.then(|| text.to_owned()).ok_or_else(help)
}

/// The reference of a container image.
pub(super) fn image(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let is_good = (1..=512).contains(&text.len()) && text.chars().all(is_plain);
    let help = || "write an image, such as throng:latest or host.example/throng:0.1.0".to_owned();
    is_good.then(|| text.to_owned()).ok_or_else(help)
}

/// How many of something.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, such as 2".into())
}

/// How many of something of which there must be one.
pub(super) fn count_from_one(text: &str) -> Result<usize, String> {
    let known = text.parse().ok().filter(|count: &usize| *count > 0);
    known.ok_or_else(|| "write a whole number from 1, such as 2".into())
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number <= 1e6 {
        Ok(number)
    } else {
        Err("must be above 0 and at most 1000000".into())
    }
}

pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1e9).contains(&number) { Ok(number) } else { Err("must be 0 to 1000000000".into()) }
}

/// A share such as `5%` or `0.05`, from 0 to 100 %.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = units::percent(text).ok().or_else(|| text.parse().ok());
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "write a share from 0% to 100%, such as 5%".into())
}

/// Bits per second: `5M`, `800k` or `5Mbit/s`.
pub(super) fn plain_bit_rate(text: &str) -> Result<u64, String> {
    let rate = units::bit_rate(text).or_else(|_| units::bit_rate(&format!("{text}bit/s")));
    rate.ok()
        .filter(|rate| (50e3..=1e9).contains(rate))
        .map(|rate| rate.round() as u64)
        .ok_or_else(|| "write a bitrate from 50k to 1G, such as 800k or 5M".into())
}

/// Width and height of a picture in pixels. Chroma is halved in both directions, so both are even.
pub(super) fn picture_size(text: &str) -> Result<(u32, u32), String> {
    let side = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|side| (64..=7_680).contains(side) && side.is_multiple_of(2))
    };
    let sides =
        text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    sides.ok_or_else(|| "write two even numbers from 64 to 7680, such as 1280x720".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_threads_are_no_number_of_threads() {
        assert_eq!((count("0"), count_from_one("2")), (Ok(0), Ok(2)));
        assert!(count_from_one("0").is_err() && count_from_one("-1").is_err());
    }

    #[test]
    fn ages_and_labels_are_words() {
        for (text, hours) in
            [("12h", Some(12)), ("30d", Some(720)), ("2w", Some(336)), ("0d", Some(0))]
        {
            assert_eq!(age(text).ok().map(|age| age.as_secs() / 3_600), hours, "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "-1d",
            "1.5d",
            "30 days",
            "99999999999999999999d",
            "18446744073709551615w",
            "ü",
        ] {
            assert!(age(text).is_err(), "{text}");
        }
        for (text, is_good) in
            [("nightly", true), ("v1.2-rc", true), ("größe", true), ("", false), ("a b", false)]
        {
            assert_eq!(label(text).is_ok(), is_good, "{text}");
        }
        assert!(label("\u{1b}[2J").is_err() && label(&"x".repeat(41)).is_err());
    }

    #[test]
    fn names_of_a_cluster_are_those_of_rfc_1123_and_what_is_made_of_them_too() {
        for (text, is_fleet, is_namespace, is_secret) in [
            ("throng", true, true, true),
            ("evening-2", true, true, true),
            ("2nd", false, true, true),
            ("a.b", false, false, true),
            ("Throng", false, false, false),
            ("-a", false, false, false),
            ("a-", false, false, false),
            ("a.", false, false, false),
            ("", false, false, false),
            ("a b", false, false, false),
            ("a\": b", false, false, false),
        ] {
            let judged =
                (fleet_name(text).is_ok(), namespace(text).is_ok(), secret_name(text).is_ok());
            assert_eq!(judged, (is_fleet, is_namespace, is_secret), "{text}");
        }
        let longest = "a".repeat(40);
        assert!(fleet_name(&longest).is_ok() && is_name_label(&format!("{longest}-workers-4095")));
        assert!(fleet_name(&"a".repeat(41)).is_err() && namespace(&"a".repeat(64)).is_err());
        assert!(image("host.example:5000/a/throng@sha256:0123").is_ok());
        assert!(image("a b").is_err() && image("a\"b").is_err() && image("").is_err());
    }
}
