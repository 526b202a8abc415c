//! The agent: prints its address, token and fingerprint, and serves runs until it is stopped.

use std::net::SocketAddr;
use std::time::Duration;

use throng_watch::remote::{Agent, AgentConfig, AgentPolicy};

use crate::args::Watch;
use crate::console::{CliError, Exit, Interrupt, print, say};
use crate::secrets;

pub(super) fn serve(
    command: &Watch,
    listen: SocketAddr,
    interrupt: &Interrupt,
) -> Result<Exit, CliError> {
    let token = match &command.token {
        Some(text) => secrets::secret(text)?.expose().to_owned(),
        None => new_token()?,
    };
    let config = AgentConfig {
        listen,
        token: token.clone(),
        is_tls: !command.no_tls,
        policy: AgentPolicy {
            watch: command.config()?,
            sources: command.sources()?,
            consent: command.consent()?,
        },
    };
    let agent = Agent::start(config).map_err(|error| CliError::new(Exit::Usage, error))?;
    print(&said(command, &agent, &token));
    let mut sessions = 0;
    while !interrupt.is_set() && agent.is_running() {
        std::thread::sleep(Duration::from_millis(100));
        let now = agent.sessions();
        if now != sessions {
            say(&format!("{now} {} connected", if now == 1 { "run is" } else { "runs are" }));
            sessions = now;
        }
    }
    let refused = agent.refused();
    drop(agent);
    if refused > 0 {
        say(&format!("{refused} connections were refused"));
    }
    Ok(Exit::Met)
}

/// The lines that the operator of the run copies into the scenario.
fn said(command: &Watch, agent: &Agent, token: &str) -> String {
    let address = agent.address();
    let scheme = if agent.fingerprint().is_some() { "tls" } else { "tcp" };
    let mut text = format!(
        "throng watch is ready: {}\n  agent        {scheme}://{address}\n",
        command.title()
    );
    // A token from the command line is not printed again.
    if command.token.is_none() {
        text += &format!("  token        {token}\n");
    }
    if let Some(fingerprint) = agent.fingerprint() {
        text += &format!("  fingerprint  {fingerprint}\n");
    }
    if !command.allow_load.is_empty() {
        let ports: Vec<_> = command.allow_load.iter().map(ToString::to_string).collect();
        text += &format!(
            "  load allowed on port {} while this runs; Ctrl-C ends every run\n",
            ports.join(", ")
        );
    }
    text
}

/// 128 random bits, in hexadecimal.
fn new_token() -> Result<String, CliError> {
    secrets::random_text().map_err(|error| {
        CliError::usage(format!("no token can be made ({error}); give one with --token"))
    })
}
