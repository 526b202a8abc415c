//! Finds the largest number of streams in real time: doubles until it fails, then bisects.

use super::{CapacityError, Row};

/// Calls `measure` with numbers from 1 to `most` and returns all rows in order of their numbers. A
/// number that fails is tried a second time, because other load may have been the reason.
///
/// # Errors
/// The error of `measure` for one stream; an error for more counts as a number that does not keep
/// up.
pub fn search(
    most: u32,
    mut measure: impl FnMut(u32) -> Result<Row, CapacityError>,
) -> Result<Vec<Row>, CapacityError> {
    let mut rows: Vec<Row> = Vec::new();
    let mut try_one = |streams: u32, rows: &mut Vec<Row>| -> Result<bool, CapacityError> {
        for _ in 0..2 {
            match measure(streams) {
                Ok(row) => {
                    let keeps_up = row.keeps_up();
                    rows.retain(|known| known.streams != streams);
                    rows.push(row);
                    if keeps_up {
                        return Ok(true);
                    }
                }
                Err(error) if streams == 1 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(false)
    };
    let (mut good, mut bad) = (0, most + 1);
    let mut next = 1;
    while next < bad {
        if try_one(next, &mut rows)? {
            good = next;
            next = next.saturating_mul(2).min(most);
            if good == most {
                break;
            }
        } else {
            bad = next;
        }
    }
    // Precise to a twentieth: two runs differ by more.
    while bad - good > 1 + good / 20 {
        let middle = good + (bad - good) / 2;
        if try_one(middle, &mut rows)? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    rows.sort_by_key(|row| row.streams);
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::Distribution;

    fn row(streams: u32, capacity: u32) -> Row {
        let late = if streams > capacity { 50 } else { 0 };
        let delay_us = Distribution::new();
        Row {
            streams,
            due: 100,
            pictures: 100,
            late,
            dropped: 0,
            delay_us,
            cpu_cores: 1.0,
            seconds: 1.0,
        }
    }

    #[test]
    fn the_largest_number_is_found_to_a_twentieth() {
        for capacity in [0, 1, 2, 3, 7, 25, 63, 64, 99, 100, 500] {
            let mut asked = Vec::new();
            let rows = search(100, |streams| {
                asked.push(streams);
                Ok(row(streams, capacity))
            })
            .unwrap();
            let found =
                rows.iter().filter(|row| row.keeps_up()).map(|row| row.streams).max().unwrap_or(0);
            let expect = capacity.min(100);
            assert!(found <= expect && expect - found <= 1 + expect / 20, "{capacity}: {found}");
            assert!(rows.is_sorted_by_key(|row| row.streams) && asked.len() < 32, "{asked:?}");
        }
    }

    #[test]
    fn one_bad_moment_does_not_count() {
        let mut first = true;
        let rows = search(8, |streams| {
            let was_first = streams == 4 && std::mem::replace(&mut first, false);
            Ok(row(streams, if was_first { 1 } else { 8 }))
        });
        assert_eq!(rows.unwrap().iter().filter(|row| row.keeps_up()).count(), 4, "1, 2, 4 and 8");
    }
}
