//! The steps of a search and the experience of users: tables that folders of the first versions
//! lack.

use throng_observation::{Clause, ExperienceRow, Goal, HoldOutcome, HoldRow};

use crate::table::{Column, Stored, array_columns, columns};

columns! { ExperienceRow {
    second, cohort, users, bad, uncounted_milli or "0", clauses as ByClause,
} }

impl Stored for ExperienceRow {
    const TABLE: &'static str = "experience";
    const IS_OF_CROWD: bool = true;
    const ORDER: &'static str = "second, cohort";
}

array_columns! { ByClause: [u32; Clause::ALL.len()], Clause::ALL.map(clause_column) }

/// The first versions knew no players and no chats, whose clauses are the last ones.
fn clause_column(clause: Clause) -> Column {
    let column = Column::new::<u32>(clause.column());
    if clause < Clause::Startup { column } else { column.or("0") }
}

// The first versions judged a load over its whole hold, so one that failed was bad to the end.
columns! { HoldRow {
    number, repeat = "repetition", purpose, users, from = "from_us", judged_from = "judged_from_us",
    until = "until_us", seconds, bad_seconds as BadSecondsByGoal, passed as OutcomeByGoal,
    user_seconds, bad_user_seconds, limited_seconds, recovery_ms, why, value or "NULL",
    bad_stretches or "0", broke_at = "broke_at_us" or "NULL",
    bad_to_the_end or "passed_acceptable = 'no'", step or "1", unloaded or "NULL",
} }

impl Stored for HoldRow {
    const TABLE: &'static str = "hold";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "number";
}

array_columns! {
    BadSecondsByGoal: [u32; Goal::ALL.len()],
    ["bad_seconds_clean", "bad_seconds_acceptable", "bad_seconds_broken"].map(Column::new::<u32>)
}

array_columns! {
    OutcomeByGoal: [HoldOutcome; Goal::ALL.len()],
    ["passed_clean", "passed_acceptable", "passed_broken"].map(Column::new::<HoldOutcome>)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use throng_observation::run::CohortId;
    use throng_observation::{Purpose, RunTime, Unloaded};

    use super::*;
    use crate::table::{columns_of, create, list, put};

    #[test]
    fn the_columns_by_goal_are_in_the_order_of_the_goals() {
        let names: Vec<_> = columns_of::<HoldRow>().iter().map(|column| column.name).collect();
        for kind in ["bad_seconds", "passed"] {
            let of_kind: Vec<_> =
                names.iter().filter(|name| name.starts_with(kind)).copied().collect();
            assert_eq!(of_kind, Goal::ALL.map(|goal| format!("{kind}_{}", goal.key())));
        }
    }

    #[test]
    fn holds_and_experience_read_back_as_they_were() {
        let mut db = Connection::open_in_memory().unwrap();
        db.execute_batch(&(create::<ExperienceRow>() + &create::<HoldRow>())).unwrap();
        let experience = ExperienceRow {
            second: 3,
            cohort: CohortId(1),
            users: 9,
            bad: 4,
            uncounted_milli: 1_500,
            clauses: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
        };
        let hold = HoldRow {
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
            unloaded: Some(Unloaded { delay_us: 290_000, ..Unloaded::default() }),
            ..HoldRow::default()
        };
        let transaction = db.transaction().unwrap();
        put(&transaction, &[experience]).unwrap();
        put(&transaction, std::slice::from_ref(&hold)).unwrap();
        transaction.commit().unwrap();
        assert_eq!(list::<ExperienceRow>(&db).unwrap(), [experience]);
        assert_eq!(list::<HoldRow>(&db).unwrap(), [hold]);
        db.execute_batch(
            "UPDATE hold SET purpose = 'again'; ALTER TABLE hold DROP COLUMN bad_to_the_end;",
        )
        .unwrap();
        let older = list::<HoldRow>(&db).unwrap().remove(0);
        assert_eq!(
            (older.purpose, older.bad_to_the_end),
            (Purpose::Retest, false),
            "keys of earlier versions"
        );
    }
}
