//! The steps of a search, and how users fared: tables that a folder from before them has not.

use std::collections::BTreeSet;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction};
use throng_observation::run::CohortId;
use throng_observation::{Clause, ExperienceRow, HoldOutcome, HoldRow, Purpose, RunTime};

use crate::reader::list;
use crate::rows::{Cells, int, opt, put};
use crate::waiting::Waiting;

/// Columns of `experience`; the last are the clauses, by [`Clause::key`].
pub(crate) const EXPERIENCE: [&str; 12] = [
    "second",
    "cohort",
    "users",
    "bad",
    "uncounted_milli",
    "not_connected",
    "no_media",
    "loss",
    "delay",
    "fps",
    "freeze",
    "jitter",
];

/// Columns of `hold`.
pub(crate) const HOLD: [&str; 24] = [
    "number",
    "repetition",
    "purpose",
    "users",
    "from_us",
    "judged_from_us",
    "until_us",
    "seconds",
    "bad_seconds_clean",
    "bad_seconds_acceptable",
    "bad_seconds_broken",
    "passed_clean",
    "passed_acceptable",
    "passed_broken",
    "user_seconds",
    "bad_user_seconds",
    "limited_seconds",
    "recovery_ms",
    "why",
    "value",
    "bad_stretches",
    "broke_at_us",
    "bad_to_the_end",
    "step",
];

/// The statements that make the tables.
pub(crate) const CREATE: &str = "
         CREATE TABLE experience (second INTEGER NOT NULL, cohort INTEGER NOT NULL, users INTEGER NOT NULL,
             bad INTEGER NOT NULL, uncounted_milli INTEGER NOT NULL, not_connected INTEGER NOT NULL, no_media INTEGER NOT NULL, loss INTEGER NOT NULL,
             delay INTEGER NOT NULL, fps INTEGER NOT NULL, freeze INTEGER NOT NULL, jitter INTEGER NOT NULL);
         CREATE TABLE hold (number INTEGER PRIMARY KEY, repetition INTEGER NOT NULL, purpose TEXT NOT NULL,
             users INTEGER NOT NULL, from_us INTEGER NOT NULL, judged_from_us INTEGER, until_us INTEGER,
             seconds INTEGER NOT NULL, bad_seconds_clean INTEGER NOT NULL, bad_seconds_acceptable INTEGER NOT NULL,
             bad_seconds_broken INTEGER NOT NULL, passed_clean TEXT NOT NULL, passed_acceptable TEXT NOT NULL,
             passed_broken TEXT NOT NULL, user_seconds INTEGER NOT NULL, bad_user_seconds INTEGER NOT NULL,
             limited_seconds INTEGER NOT NULL, recovery_ms INTEGER, why TEXT, value TEXT,
             bad_stretches INTEGER NOT NULL, broke_at_us INTEGER,
             bad_to_the_end INTEGER NOT NULL, step INTEGER NOT NULL);";

/// Writes what waits.
pub(crate) fn put_all(db: &Transaction<'_>, waiting: &Waiting) -> rusqlite::Result<()> {
    put(db, "experience", &EXPERIENCE, &waiting.experience, experience)?;
    put(db, "hold", &HOLD, waiting.holds.values(), hold)
}

/// Reads both tables, empty where there are none.
pub(crate) fn read_all(db: &Connection) -> rusqlite::Result<(Vec<ExperienceRow>, Vec<HoldRow>)> {
    let has_them =
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('experience', 'hold')";
    if db.query_row(has_them, [], |row| row.get::<_, i64>(0))? < 2 {
        return Ok(Default::default());
    }
    let columns = known(db, "experience", EXPERIENCE)?;
    let experience = list(db, "experience", &columns, "second, cohort", read_experience)?;
    Ok((experience, list(db, "hold", &known(db, "hold", HOLD)?, "number", read_hold)?))
}

/// The columns of a table, and what stands for those that came later than this file.
fn known<const N: usize>(
    db: &Connection,
    table: &str,
    columns: [&'static str; N],
) -> rusqlite::Result<[&'static str; N]> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let known: BTreeSet<String> =
        statement.query_map([table], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(columns.map(|column| if known.contains(column) { column } else { absent(column) }))
}

/// What stands for a column that is not there.
fn absent(column: &str) -> &'static str {
    match column {
        "bad_stretches" | "uncounted_milli" => "0",
        "step" => "1",
        // What failed there failed by the rule of then: for as long as it was looked at.
        "bad_to_the_end" => "passed_acceptable = 'no'",
        _ => "NULL",
    }
}

fn experience(row: &ExperienceRow) -> Vec<Value> {
    let mut values: Vec<Value> = vec![row.second.into(), i64::from(row.cohort.0).into()];
    values.extend(
        [row.users, row.bad, row.uncounted_milli]
            .into_iter()
            .chain(row.clauses)
            .map(|count| i64::from(count).into()),
    );
    values
}

fn hold(row: &HoldRow) -> Vec<Value> {
    let mut values: Vec<Value> = vec![
        i64::from(row.number).into(),
        i64::from(row.repeat).into(),
        row.purpose.key().to_owned().into(),
        i64::from(row.users).into(),
        row.from.0.into(),
        opt(row.judged_from.map(|at| at.0)),
        opt(row.until.map(|at| at.0)),
        i64::from(row.seconds).into(),
    ];
    values.extend(row.bad_seconds.iter().map(|seconds| Value::from(i64::from(*seconds))));
    values.extend(row.passed.iter().map(|passed| Value::from(passed.key().to_owned())));
    values.extend([
        int(row.user_seconds),
        int(row.bad_user_seconds),
        i64::from(row.limited_seconds).into(),
        opt(row.recovery_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX))),
        opt(row.why.clone()),
        opt(row.value.clone()),
        i64::from(row.bad_stretches).into(),
        opt(row.broke_at.map(|at| at.0)),
        row.bad_to_the_end.into(),
        i64::from(row.step).into(),
    ]);
    values
}

fn read_experience(row: &Row<'_>) -> rusqlite::Result<ExperienceRow> {
    let mut c = Cells::of(row);
    let mut read = ExperienceRow {
        second: c.take()?,
        cohort: CohortId(c.take()?),
        users: c.take()?,
        bad: c.take()?,
        uncounted_milli: c.take()?,
        clauses: [0; Clause::ALL.len()],
    };
    for clause in &mut read.clauses {
        *clause = c.take()?;
    }
    Ok(read)
}

fn read_hold(row: &Row<'_>) -> rusqlite::Result<HoldRow> {
    let mut c = Cells::of(row);
    let mut read = HoldRow {
        number: c.take()?,
        repeat: c.take()?,
        purpose: word(&mut c, Purpose::ALL, Purpose::key)?,
        users: c.take()?,
        from: RunTime(c.take()?),
        judged_from: c.take::<Option<i64>>()?.map(RunTime),
        until: c.take::<Option<i64>>()?.map(RunTime),
        seconds: c.take()?,
        ..HoldRow::default()
    };
    for seconds in &mut read.bad_seconds {
        *seconds = c.take()?;
    }
    for passed in &mut read.passed {
        *passed =
            word(&mut c, [HoldOutcome::Undecided, HoldOutcome::Yes, HoldOutcome::No], HoldOutcome::key)?;
    }
    read.user_seconds = c.count()?;
    read.bad_user_seconds = c.count()?;
    read.limited_seconds = c.take()?;
    read.recovery_ms = c.take::<Option<i64>>()?.and_then(|ms| u64::try_from(ms).ok());
    read.why = c.take()?;
    read.value = c.take()?;
    read.bad_stretches = c.take()?;
    read.broke_at = c.take::<Option<i64>>()?.map(RunTime);
    read.bad_to_the_end = c.take()?;
    read.step = c.take()?;
    Ok(read)
}

/// The value that is called so; an unknown word, of a later throng, reads as the first.
fn word<T: Copy + Default, const N: usize>(
    c: &mut Cells<'_, '_>,
    all: [T; N],
    key: impl Fn(T) -> &'static str,
) -> rusqlite::Result<T> {
    let text: String = c.take()?;
    Ok(all.into_iter().find(|value| key(*value) == text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_observation::{Goal, SecondClosed};

    #[test]
    fn the_columns_of_experience_end_with_the_clauses() {
        assert_eq!(EXPERIENCE[5..], Clause::ALL.map(Clause::key));
        assert_eq!(Goal::ALL.len(), HoldRow::default().passed.len());
    }

    #[test]
    fn holds_and_experience_read_back_as_they_were() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(CREATE).unwrap();
        let seen = ExperienceRow {
            second: 3,
            cohort: CohortId(1),
            users: 9,
            bad: 4,
            uncounted_milli: 1_500,
            clauses: [1, 2, 3, 4, 5, 6, 7],
        };
        let step = HoldRow {
            number: 2,
            repeat: 1,
            purpose: Purpose::Confirm,
            users: 27,
            step: 9,
            from: RunTime(-1),
            judged_from: Some(RunTime(7)),
            seconds: 30,
            bad_seconds: [5, 3, 0],
            passed: [HoldOutcome::No, HoldOutcome::Undecided, HoldOutcome::Yes],
            user_seconds: 810,
            bad_user_seconds: 11,
            limited_seconds: 2,
            recovery_ms: Some(1500),
            why: Some("the server died".into()),
            bad_stretches: 2,
            broke_at: Some(RunTime(9)),
            bad_to_the_end: true,
            ..HoldRow::default()
        };
        let mut waiting = Waiting::default();
        let closed = SecondClosed { second: 3, experience: vec![seen], is_generator_limited: false };
        assert!(waiting.keep(throng_observation::run::Row::SecondClosed(closed)));
        assert!(waiting.keep(throng_observation::run::Row::Hold(Box::new(step.clone()))));
        let moment = db.transaction().unwrap();
        put_all(&moment, &waiting).unwrap();
        moment.commit().unwrap();
        assert_eq!(read_all(&db).unwrap(), (vec![seen], vec![step]));
    }
}
