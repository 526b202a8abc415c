//! `throng stage`: the embedded media server, until it is told to stop.

use std::time::Duration;

use throng_scenario::units;
use throng_stage::{Card, Stage, StageConfig};

use crate::args;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::{Stop, print};

pub(crate) fn stage(command: &args::Stage) -> Result<Exit, Stop> {
    let stage = Stage::start(config(command)?).map_err(|error| Stop::new(Exit::Usage, error))?;
    print(&format!(
        "throng stage is playing\n  watch     {}\n  publish   {}\n  player    {}\n  fill it   throng view whep+{} -n 50\n",
        stage.whep_url(),
        stage.whip_url(),
        stage.player_url(),
        stage.whep_url(),
    ));
    let interrupt = Interrupt::listen().map_err(|error| Stop::new(Exit::Invalid, error))?;
    while !interrupt.is_set() {
        std::thread::sleep(Duration::from_millis(100));
    }
    let stats = stage.stats();
    stage.stop();
    print(&format!(
        "{} viewers came, {} packets sent, {} dropped at the egress cap\n",
        stats.viewers_total, stats.packets_sent, stats.link_drops
    ));
    Ok(Exit::Met)
}

fn config(command: &args::Stage) -> Result<StageConfig, Stop> {
    let egress_bps = match &command.egress_cap {
        Some(text) => {
            Some(units::bit_rate(text).map_err(|error| Stop::usage(format!("--egress-cap: {error}")))?)
        }
        None => None,
    };
    Ok(StageConfig {
        http_listen: command.listen,
        listen_any: command.listen_any,
        workers: command.workers,
        max_viewers: command.max_viewers,
        egress_bps: egress_bps.map(|bps| bps as u64),
        egress_queue_ms: command.egress_queue_ms,
        work_per_packet: command.work_per_packet,
        bearer_token: command.token.clone(),
        card: card(&command.card)?,
    })
}

/// The test card of that name.
pub(crate) fn card(name: &str) -> Result<Card, Stop> {
    Card::from_name(name)
        .ok_or_else(|| Stop::usage(format!("there is no test card `{name}`: standard or low")))
}
