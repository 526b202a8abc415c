//! What decoders made of tapped tracks: a table that is made when the first rows come, by whoever decoded.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Row, TransactionBehavior};
use throng_observation::run::{DecodedRow, ParticipantId};
use throng_observation::{Codec, TrackId};

use crate::rows::{Cells, blob, int, opt, put};
use crate::{StoreError, schema};

/// Columns of `decoded`.
const DECODED: [&str; 23] = [
    "second",
    "participant",
    "track",
    "codec",
    "width",
    "height",
    "frames_fed",
    "frames_dropped",
    "breaks",
    "pictures",
    "numbers_read",
    "numbers_next",
    "numbers_repeated",
    "numbers_skipped",
    "freeze_count",
    "freeze_us",
    "decode_delay_us",
    "glass_delay_us",
    "capture_basis",
    "glass_delay_negative",
    "ssim_mean",
    "ssim_min",
    "ssim_pictures",
];

const CREATE: &str = "CREATE TABLE IF NOT EXISTS decoded (second INTEGER NOT NULL, participant INTEGER NOT NULL,
    track INTEGER NOT NULL, codec TEXT NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    frames_fed INTEGER NOT NULL, frames_dropped INTEGER NOT NULL, breaks INTEGER NOT NULL, pictures INTEGER NOT NULL,
    numbers_read INTEGER NOT NULL, numbers_next INTEGER NOT NULL, numbers_repeated INTEGER NOT NULL,
    numbers_skipped INTEGER NOT NULL, freeze_count INTEGER NOT NULL, freeze_us INTEGER NOT NULL, decode_delay_us BLOB,
    glass_delay_us BLOB, capture_basis TEXT, glass_delay_negative INTEGER NOT NULL, ssim_mean REAL, ssim_min REAL,
    ssim_pictures INTEGER NOT NULL, PRIMARY KEY (second, participant, track)) WITHOUT ROWID";

/// Adds rows to the `run.db` at `path`, replacing those of the same second and track. Beside the run's own writer this is
/// the only one; each waits for the other's transaction.
pub(crate) fn add(path: &Path, decoded: &[DecodedRow]) -> Result<(), StoreError> {
    let named = |error| StoreError::from_sql(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(path, flags).map_err(named)?;
    crate::reader::check_identity(&db, path)?;
    // At once for writing: one that began to read could not go on behind the run's own commit.
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(named)?;
    transaction.execute_batch(CREATE).map_err(named)?;
    put(&transaction, "decoded", &DECODED, decoded, values).map_err(named)?;
    transaction.commit().map_err(named)
}

fn values(row: &DecodedRow) -> Vec<Value> {
    vec![
        row.second.into(),
        i64::from(row.participant.0).into(),
        i64::from(row.track.0).into(),
        row.codec.name().to_owned().into(),
        i64::from(row.width).into(),
        i64::from(row.height).into(),
        int(row.frames_fed),
        int(row.frames_dropped),
        int(row.breaks),
        int(row.pictures),
        int(row.numbers_read),
        int(row.numbers_next),
        int(row.numbers_repeated),
        int(row.numbers_skipped),
        int(row.freeze_count),
        int(row.freeze_us),
        blob(&row.decode_delay_us),
        blob(row.glass_delay.distribution()),
        opt(row.glass_delay.basis().map(|basis| basis.key().to_owned())),
        int(row.glass_delay.negative()),
        opt(row.ssim_mean),
        opt(row.ssim_min),
        int(row.ssim_pictures),
    ]
}

pub(crate) fn read_all(db: &Connection) -> rusqlite::Result<Vec<DecodedRow>> {
    let mut all = Vec::new();
    each(db, |row| all.push(row))?;
    Ok(all)
}

/// Shows `each` every row, by second, participant and track.
pub(crate) fn each(db: &Connection, mut each: impl FnMut(DecodedRow)) -> rusqlite::Result<()> {
    let has_table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'decoded'";
    if db.query_row(has_table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(());
    }
    let mut statement = db.prepare(&schema::select("decoded", &DECODED, "second, participant, track"))?;
    for row in statement.query_map([], read)? {
        each(row?);
    }
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<DecodedRow> {
    let mut c = Cells::of(row);
    Ok(DecodedRow {
        second: c.take()?,
        participant: ParticipantId(c.take()?),
        track: TrackId(c.take()?),
        codec: Codec::from_name(&c.take::<String>()?),
        width: c.take()?,
        height: c.take()?,
        frames_fed: c.count()?,
        frames_dropped: c.count()?,
        breaks: c.count()?,
        pictures: c.count()?,
        numbers_read: c.count()?,
        numbers_next: c.count()?,
        numbers_repeated: c.count()?,
        numbers_skipped: c.count()?,
        freeze_count: c.count()?,
        freeze_us: c.count()?,
        decode_delay_us: c.distribution()?,
        glass_delay: c.one_way()?,
        ssim_mean: c.take()?,
        ssim_min: c.take()?,
        ssim_pictures: c.count()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_column() {
        let page = include_str!("../../../docs/run-folder.md");
        for column in DECODED {
            assert!(page.contains(&format!("`{column}`")), "{column}");
        }
    }
}
