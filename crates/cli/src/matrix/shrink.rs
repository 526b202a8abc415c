//! A cell with less of a resource: limits of its server where there are some, else commands that
//! are undone.

use throng_rig::{
    ShrinkStep, cpus_allowed, line_rate_step, open_files, parse_cpus, receive_buffers_step,
};
use throng_scenario::matrix::{CellConfig, Server, Shrink, ShrunkResource, Step};

/// What a server may never fall below: its own libraries and sockets.
const NOFILE_MIN: f64 = 16.0;

/// Applies what `config` says to shrink.
///
/// # Errors
/// In words, if there is nothing of which a share could be taken.
pub(super) fn apply(mut config: CellConfig) -> Result<CellConfig, String> {
    for shrink in std::mem::take(&mut config.shrink) {
        one(&mut config, &shrink)?;
    }
    Ok(config)
}

fn one(config: &mut CellConfig, shrink: &Shrink) -> Result<(), String> {
    let to = shrink.to;
    let server = &mut config.server;
    let needs_limit = |key: &str, example: &str| {
        format!(
            "{} cannot be shrunk: [server] has no `{key}`, so that what the server has of it is \
             not known; write {example}",
            shrink.resource.key()
        )
    };
    if server.command.is_none()
        && !matches!(shrink.resource, ShrunkResource::Network { .. } | ShrunkResource::Rmem)
    {
        return Err(format!(
            "{} of a server that throng does not start cannot be shrunk",
            shrink.resource.key()
        ));
    }
    match &shrink.resource {
        ShrunkResource::Cpu => server.cpu_quota = Some(cpus(server)? * to),
        ShrunkResource::Memory => {
            let bytes =
                server.memory_bytes.ok_or_else(|| needs_limit("memory", "memory = \"1GB\""))?;
            server.memory_bytes = Some((bytes as f64 * to).round().max(1.0) as u64);
        }
        ShrunkResource::Disk => {
            let example = "disk = { path = \"/srv/media\", read = \"800Mbit/s\" }";
            let disk = server.disk.as_mut().ok_or_else(|| needs_limit("disk", example))?;
            disk.read_bytes_per_s = (disk.read_bytes_per_s as f64 * to).round().max(1.0) as u64;
        }
        ShrunkResource::Nofile => {
            let files = server.nofile.unwrap_or_else(open_files) as f64;
            server.nofile = Some((files * to).round().max(NOFILE_MIN) as u64);
        }
        ShrunkResource::Network { interface, rate_bps } => {
            config.setup.insert(0, step(line_rate_step(interface, rate_bps * to)));
        }
        ShrunkResource::Rmem => config.setup.insert(0, step(receive_buffers_step(to))),
    }
    Ok(())
}

/// CPUs that the server may use: its quota, its CPUs, those of this machine, whichever is least.
fn cpus(server: &Server<String>) -> Result<f64, String> {
    let listed = match &server.cpus {
        Some(list) => parse_cpus(list).map_err(|error| format!("server.cpus: {error}"))?.len(),
        None => cpus_allowed(),
    };
    Ok(server.cpu_quota.map_or(listed as f64, |quota| quota.min(listed as f64)))
}

fn step(step: ShrinkStep) -> Step<String> {
    Step { run: step.run, undo: step.undo }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_scenario::matrix::DiskLimit;

    fn shrunk(resource: ShrunkResource, server: Server<String>) -> Result<CellConfig, String> {
        let command = Some(vec!["server".to_owned()]);
        apply(CellConfig {
            set: Vec::new(),
            server: Server { command, ..server },
            setup: Vec::new(),
            variables: Vec::new(),
            shrink: vec![Shrink { resource, to: 0.8, is_placebo: false }],
        })
    }

    #[test]
    fn a_share_is_taken_of_what_the_server_has() {
        let cpu = |server| shrunk(ShrunkResource::Cpu, server).unwrap().server.cpu_quota.unwrap();
        assert!((cpu(Server { cpu_quota: Some(0.5), ..Server::default() }) - 0.4).abs() < 1e-9);
        assert!((cpu(Server { cpus: Some("0".into()), ..Server::default() }) - 0.8).abs() < 1e-9);
        assert!((cpu(Server::default()) - 0.8 * cpus_allowed() as f64).abs() < 1e-9);
        let memory = Server { memory_bytes: Some(1_000), ..Server::default() };
        assert_eq!(shrunk(ShrunkResource::Memory, memory).unwrap().server.memory_bytes, Some(800));
        let disk = DiskLimit { path: "/".to_owned(), read_bytes_per_s: 10 };
        let disk = Server { disk: Some(disk), ..Server::default() };
        assert_eq!(
            shrunk(ShrunkResource::Disk, disk).unwrap().server.disk.unwrap().read_bytes_per_s,
            8
        );
        let nofile = Server { nofile: Some(100), ..Server::default() };
        assert_eq!(shrunk(ShrunkResource::Nofile, nofile).unwrap().server.nofile, Some(80));
        let line = ShrunkResource::Network { interface: "v0".into(), rate_bps: 20e6 };
        let config = shrunk(line, Server::default()).unwrap();
        assert!(
            config.setup[0].run[2].contains("rate 16000000bit") && !config.setup[0].undo.is_empty()
        );
    }

    #[test]
    fn what_has_no_limit_is_not_guessed() {
        for (resource, key) in
            [(ShrunkResource::Memory, "`memory`"), (ShrunkResource::Disk, "`disk`")]
        {
            let error = shrunk(resource, Server::default()).unwrap_err();
            assert!(error.contains(key) && error.contains("write "), "{error}");
        }
    }
}
