//! The agents on a run's servers. They are connected first, because the run needs their consent to
//! begin.

use std::net::IpAddr;

use throng_engine::{ConsentEnd, ConsentLost};
use throng_scenario::{Agent, AgentProof, Caps, Plan};
use throng_watch::remote::{Presence, RemoteAgent, RemoteConfig};

use crate::secrets;

/// The agent of each watch of the plan, or why it cannot be reached; `None` where a watch has no
/// agent.
#[derive(Debug)]
pub(crate) struct Agents(Vec<Option<Result<RemoteAgent, String>>>);

/// An agent's consent to load, valid as long as the agent is connected.
#[derive(Clone, Debug)]
pub(crate) struct Agreement {
    /// The address, ports and limits that it covers.
    pub(crate) proof: AgentProof,
    /// The agent's address.
    pub(crate) agent: String,
    presence: Presence,
}

impl Agents {
    /// Connects to all agents at once. An unreachable one does not end the run; it is reported when
    /// watching begins.
    pub(crate) fn connect(plan: &Plan) -> Self {
        std::thread::scope(|scope| {
            let begin = |agent: &Agent| {
                let agent = agent.clone();
                scope.spawn(move || connect(&agent))
            };
            let asked: Vec<_> =
                plan.watch.iter().map(|watch| watch.agent.as_ref().map(begin)).collect();
            let fault = || Err("a fault of throng: the thread that connects to it died".to_owned());
            Self(
                asked
                    .into_iter()
                    .map(|asked| Some(asked?.join().unwrap_or_else(|_| fault())))
                    .collect(),
            )
        })
    }

    /// The consents of the connected agents.
    pub(crate) fn agreements(&self) -> Vec<Agreement> {
        let there = self.0.iter().flatten().filter_map(|agent| agent.as_ref().ok());
        there.filter_map(agreement).collect()
    }

    /// Why agents could not be reached, for the message of a run that needs one.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().filter_map(|agent| agent.as_ref().err().map(String::as_str))
    }

    /// Takes the agent of a watch.
    pub(super) fn take(&mut self, watch: usize) -> Result<RemoteAgent, String> {
        let agent = self.0.get_mut(watch).and_then(Option::take);
        agent.unwrap_or_else(|| Err("its agent was not connected".into()))
    }
}

impl Agreement {
    /// Whether it covers load on this address and port.
    pub(crate) fn covers(&self, address: IpAddr, port: u16) -> bool {
        self.proof.validate(address, port).is_ok()
    }

    /// Whether it still holds. An agent that was ended cannot be told from one that is not reached.
    pub(crate) fn check(&self) -> Result<(), ConsentLost> {
        if self.presence.was_never_lost() {
            return Ok(());
        }
        let detail = format!("the agent at {} is gone, and with it its consent", self.agent);
        Err(ConsentLost::new(ConsentEnd::Unanswered, detail))
    }
}

fn connect(agent: &Agent) -> Result<RemoteAgent, String> {
    let token = agent.token.as_ref().ok_or("its token is not known: write token = \"env:NAME\"")?;
    let token = secrets::token(token).map_err(|stop| stop.error.to_string())?.expose().to_owned();
    let fingerprint = agent
        .fingerprint
        .as_ref()
        .filter(|_| agent.is_tls)
        .map(|digits| {
            digits
                .parse()
                .map_err(|error: throng_watch::remote::FingerprintError| error.to_string())
        })
        .transpose()?;
    let address = format!("{}:{}", agent.host, agent.port);
    RemoteAgent::connect(&RemoteConfig { address, token, fingerprint })
        .map_err(|error| error.to_string())
}

fn agreement(remote: &RemoteAgent) -> Option<Agreement> {
    let consent = remote.consent()?;
    let caps = Caps {
        users: consent.users_max,
        joins_per_s: consent.joins_per_s_max,
        mbit_per_s: consent.mbit_per_s_max,
        duration: consent.duration_s_max.map(std::time::Duration::from_secs),
    };
    // What is not understood allows nothing.
    let ports = consent.ports.iter().filter_map(|ports| ports.parse().ok()).collect();
    let proof = AgentProof { answered_at: remote.peer().ip(), ports, caps };
    Some(Agreement { proof, agent: remote.peer().to_string(), presence: remote.presence() })
}
