//! Values of the command line, with the ranges that help texts name.

use std::time::Duration;

use throng_scenario::units::{self, UnitError};

use crate::CliError;

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

/// A number of viewers.
pub(super) fn viewers(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|count| (1..=1_000_000).contains(count))
        .ok_or_else(|| "write a whole number from 1 to 1000000, such as 50".into())
}

/// How many of something.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, such as 2".into())
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number <= 1e6 { Ok(number) } else { Err("must be above 0 and at most 1000000".into()) }
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
        text.parse::<u32>().ok().filter(|side| (64..=7_680).contains(side) && side.is_multiple_of(2))
    };
    let sides = text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
    sides.ok_or_else(|| "write two even numbers from 64 to 7680, such as 1280x720".into())
}
