//! The plan of a scenario in words: `throng check`, and `--dry-run`.

use throng_scenario::Plan;

use super::{read_secrets, warnings};
use crate::console::{CliError, Exit, print};
use crate::{media, watchers};

/// Prints a plan. A secret or a file that would refuse the run refuses it here too; where workers
/// of a fleet play it (not `plays_here`) the secrets are theirs.
pub(crate) fn describe(plan: &Plan, plays_here: bool) -> Result<Exit, CliError> {
    if plays_here {
        read_secrets(plan)?;
    }
    watchers::refuse_port_elsewhere(plan, watchers::may_be_own_host(&plan.target))?;
    let clips = media::clips(plan)?;
    let pages = media::Pages::read(plan)?;
    print(&plan.describe());
    print(&pages.describe());
    for (file, clip) in &clips {
        let rate = throng_observation::units::bit_rate(clip.bitrate_bps());
        let left_out = match clip.skipped_frames() {
            0 => String::new(),
            count => format!(", {count} frames of the file left out"),
        };
        let (codec, seconds) = (clip.codec().name(), clip.duration_s());
        print(&format!("plays       {}: {codec}, {seconds:.1} s, {rate}{left_out}\n", file.path));
    }
    for warning in warnings(plan, &pages) {
        print(&format!("warning: {warning}\n"));
    }
    Ok(Exit::Met)
}

#[cfg(test)]
mod tests {
    use throng_scenario::Scenario;

    use super::*;

    #[test]
    fn secrets_of_workers_are_not_read_here() {
        let text = "[target]\nurl = \"whep+http://127.0.0.1:7080/whep\"\n\
                    token = \"env:THRONG_TEST_NO_SUCH_TOKEN\"\n[crowd]\nsize = 1\n";
        let plan = Scenario::parse_with(text, &[]).unwrap_or_else(|e| panic!("{e}")).plan();
        assert!(describe(&plan, true).is_err());
        assert_eq!(describe(&plan, false).ok(), Some(Exit::Met));
    }
}
