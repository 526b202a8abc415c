//! Results of decoding tapped tracks: a table that the decoding process creates with its first
//! rows.

use std::path::Path;

use rusqlite::TransactionBehavior;
use throng_observation::run::DecodedRow;

use crate::rows::GlassDelay;
use crate::table::{self, Stored, columns};
use crate::{StoreError, opened, schema};

columns! { DecodedRow {
    second, participant, track, codec, width, height, frames_fed or "frames_given", frames_dropped,
    breaks, pictures, numbers_read, numbers_next, numbers_repeated, numbers_skipped, freeze_count,
    freeze_us, decode_delay_us, glass_delay as GlassDelay, ssim_mean, ssim_min, ssim_pictures,
} }

impl Stored for DecodedRow {
    const TABLE: &'static str = "decoded";
    const IS_OF_CROWD: bool = false;
    const KEY: &'static str = "second, participant, track";
}

/// Adds rows to the `run.db` at `path`, replacing those of the same second and track. The only
/// writer apart from the run's own; each waits for the other's transaction.
pub(crate) fn add(path: &Path, decoded: &[DecodedRow]) -> Result<(), StoreError> {
    let named = |error| StoreError::from_sql(path, error);
    let mut db = opened::open(path)?;
    schema::check_identity(&db, path)?;
    // A write transaction from the start: one that began with a read cannot write after a commit of
    // the run's writer.
    let transaction =
        db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(named)?;
    transaction.execute_batch(&table::create::<DecodedRow>()).map_err(named)?;
    table::put(&transaction, decoded).map_err(named)?;
    transaction.commit().map_err(named)
}
