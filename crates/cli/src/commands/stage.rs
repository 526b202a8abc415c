//! `throng stage`: runs the embedded media server until a signal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use throng_engine::preflight::own_addresses;
use throng_observation::shell;
use throng_observation::units::count;
use throng_scenario::units;
use throng_stage::{Card, EmulatedServer, Planted, Stage, StageConfig};

use crate::args;
use crate::console::{CliError, Exit, Interrupt, print};

pub(crate) fn stage(command: &args::Stage) -> Result<Exit, CliError> {
    let config = config(command)?;
    let (media_ip, listens_anywhere) =
        (config.media_ip(), config.http_listen.ip().is_unspecified());
    let stage = Stage::start(config).map_err(|error| CliError::new(Exit::Usage, error))?;
    let watch = stage.whep_url();
    let (publish, player) = (stage.whip_url(), stage.player_url());
    print(&format!(
        "throng stage is playing\n  watch     {watch}\n  publish   {publish}\n  player    \
         {player}\n  fill it   throng view {} -n 50\n",
        shell::word(format!("whep+{watch}"))
    ));
    if !media_ip.is_loopback() {
        print(&format!("            (from another machine with --allow-target {media_ip})\n"));
    }
    if listens_anywhere {
        print(&format!(
            "  media     only on {media_ip}, independent of the HTTP address; --media-ip sets \
             another\n"
        ));
    }
    let interrupt = Interrupt::listen().map_err(CliError::invalid)?;
    while !interrupt.is_set() {
        std::thread::sleep(Duration::from_millis(100));
    }
    let stats = stage.stats();
    stage.stop();
    print(&format!(
        "{} joined, {} packets sent, {} dropped at the egress cap\n",
        count(stats.viewers_total, "viewers"),
        stats.packets_sent,
        stats.link_drops
    ));
    Ok(Exit::Met)
}

fn config(command: &args::Stage) -> Result<StageConfig, CliError> {
    let egress = command.egress_cap.as_deref();
    let egress_bps =
        egress.map(|text| args::with_unit("--egress-cap", text, units::bit_rate)).transpose()?;
    let listen = command.listen.resolved("--listen")?;
    Ok(StageConfig {
        http_listen: listen,
        media_ip: command.media_ip.or_else(|| media_ip(listen.ip(), &own_addresses())),
        listen_any: command.listen_any,
        workers: command.workers,
        max_viewers: command.max_viewers,
        egress_bps: egress_bps.map(|bps| bps as u64),
        egress_queue_ms: command.egress_queue_ms,
        planted: planted(&command.planted),
        bearer_token: command.token.clone(),
        card: card(&command.card)?,
        emulates: EmulatedServer::from_name(&command.emulates).ok_or_else(|| {
            CliError::usage(format!("--as {}: stage, srs or srs-silent", command.emulates))
        })?,
    })
}

fn planted(flags: &args::Planted) -> Planted {
    Planted {
        work_per_packet: flags.work_per_packet,
        copy_per_packet_kb: flags.copy_per_packet_kb,
        shared_lock: flags.shared_lock,
        memory_per_viewer_mb: flags.memory_per_viewer_mb,
        crash_at: flags.crash_at,
        backlog: flags.backlog,
        accept_pause_ms: flags.accept_pause_ms,
        send_buffer_kb: flags.send_buffer_kb,
        receive_buffer_kb: flags.receive_buffer_kb,
        receive_rate: flags.receive_rate,
        media_folder: flags.media_folder.clone(),
        pictures_max: flags.pictures_max,
        sound_ends_after_s: flags.sound_ends_after_s,
        stutters_beyond: flags.stutters_beyond,
        no_rtx: flags.no_rtx,
    }
}

/// The media address if HTTP listens on all addresses. An ICE candidate has one address: one that
/// other machines can reach, of the same family if there is one, otherwise loopback.
fn media_ip(listen: IpAddr, own: &[IpAddr]) -> Option<IpAddr> {
    if !listen.is_unspecified() {
        return None;
    }
    let is_link_local = |ip: &IpAddr| match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let reachable = || own.iter().filter(|ip| !ip.is_loopback() && !is_link_local(ip));
    let same_family = reachable().find(|ip| ip.is_ipv4() == listen.is_ipv4());
    // `[::]` accepts IPv4 as well; `0.0.0.0` accepts IPv4 only.
    let found = same_family.or_else(|| reachable().find(|_| listen.is_ipv6()));
    found.copied().or(Some(match listen {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    }))
}

pub(crate) fn card(name: &str) -> Result<Card, CliError> {
    Card::from_name(name)
        .ok_or_else(|| CliError::usage(format!("there is no test card `{name}`: standard or low")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_of_a_stage_that_listens_anywhere_goes_where_others_can_reach_it() {
        let own = ["127.0.0.1", "169.254.1.1", "10.0.0.5", "::1", "fe80::1", "2001:db8::5"];
        let own = own.map(|ip| ip.parse::<IpAddr>().unwrap());
        for (listen, own, expect) in [
            ("127.0.0.1", &own[..], None),
            ("10.0.0.5", &own, None),
            ("0.0.0.0", &own, Some("10.0.0.5")),
            ("::", &own, Some("2001:db8::5")),
            ("::", &own[..3], Some("10.0.0.5")),
            ("0.0.0.0", &own[3..], Some("127.0.0.1")),
            ("::", &[], Some("::1")),
        ] {
            let ip = media_ip(listen.parse().unwrap(), own);
            assert_eq!(ip.map(|ip| ip.to_string()).as_deref(), expect, "{listen}");
        }
    }
}
