//! Consent by presence: the owner runs an agent on the target, and consents as long as it runs.

use std::net::IpAddr;

use super::ports::{IpProtocol, PortRange};
use crate::run::Caps;

/// The consent of an agent on a target.
///
/// It applies to the address at which the agent answered and to no other address that the agent may
/// name: the owner of an agent must not be able to point a run at another owner's host. It ends
/// with the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentProof {
    /// The address at which the agent answered.
    pub answered_at: IpAddr,
    /// The allowed ports; no other gets load, media included.
    pub ports: Vec<PortRange>,
    /// The owner's limits, which lower the run's.
    pub caps: Caps,
}

/// Why an agent's consent does not cover a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentProofError {
    /// It answers at another address.
    #[error(
        "the agent answers at {agent}, the target is at {target}: run the agent on the target \
         itself"
    )]
    OtherAddress {
        /// The address of the agent.
        agent: IpAddr,
        /// The address of the target.
        target: IpAddr,
    },
    /// The port is not allowed.
    #[error("the agent does not allow load on port {0}: start it with --allow-load {0}")]
    OtherPort(u16),
}

impl AgentProof {
    /// Checks that it covers signalling at `address` and `port`, by either protocol.
    ///
    /// # Errors
    /// If it does not.
    pub fn validate(&self, address: IpAddr, port: u16) -> Result<(), AgentProofError> {
        let (agent, target) = (self.answered_at.to_canonical(), address.to_canonical());
        if agent != target {
            return Err(AgentProofError::OtherAddress { agent, target });
        }
        let is_named = self.ports.iter().any(|range| {
            range.contains(IpProtocol::Tcp, port) || range.contains(IpProtocol::Udp, port)
        });
        if is_named { Ok(()) } else { Err(AgentProofError::OtherPort(port)) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::consent::{AddressPolicy, PermitReason, Refusal};

    #[test]
    fn an_agent_speaks_for_its_own_address_and_the_ports_it_names() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let ports = PortRange::list("8188, 10000-10100/udp").unwrap();
        let proof = AgentProof { answered_at: at("203.0.113.9"), ports, caps: Caps::NONE };
        assert_eq!(proof.validate(at("203.0.113.9"), 8188), Ok(()));
        assert_eq!(proof.validate(at("::ffff:203.0.113.9"), 8188), Ok(()));
        assert_eq!(proof.validate(at("203.0.113.9"), 80), Err(AgentProofError::OtherPort(80)));
        assert!(matches!(
            proof.validate(at("203.0.113.10"), 8188),
            Err(AgentProofError::OtherAddress { .. })
        ));
        let mut reach = AddressPolicy::default();
        reach.prove_by_agent(&proof);
        let permits =
            |protocol, to: &str| reach.permits(protocol, to.parse::<SocketAddr>().unwrap());
        for (protocol, port, is_named) in [
            (IpProtocol::Tcp, 8188, true),
            (IpProtocol::Udp, 8188, true),
            (IpProtocol::Udp, 10_050, true),
            (IpProtocol::Tcp, 10_050, false),
            (IpProtocol::Tcp, 22, false),
            (IpProtocol::Udp, 53, false),
        ] {
            let to = SocketAddr::new(at("203.0.113.9"), port);
            let expect = if is_named {
                Ok(PermitReason::Proven)
            } else {
                Err(Refusal::OtherPort(protocol, to))
            };
            assert_eq!(reach.permits(protocol, to), expect, "{protocol} {port}");
        }
        let refused = permits(IpProtocol::Udp, "203.0.113.9:53").unwrap_err().to_string();
        assert!(
            refused.contains("udp port 53") && refused.contains("--allow-load 53/udp"),
            "{refused}"
        );
        assert_eq!(
            permits(IpProtocol::Tcp, "203.0.113.10:8188"),
            Err(Refusal::PublicNotProven(at("203.0.113.10")))
        );
        reach.withdraw();
        assert!(reach.permits_address(at("203.0.113.9")).is_err());
    }

    #[test]
    fn an_agent_at_a_private_address_speaks_for_that_one_alone() {
        let address = "10.0.0.9".parse().unwrap();
        let mut reach = AddressPolicy::default();
        reach.prove_by_agent(&AgentProof {
            answered_at: address,
            ports: vec![PortRange::of_port(1)],
            caps: Caps::NONE,
        });
        // It answers, so its owner lets throng watch this machine: that is consent for this machine
        // alone.
        let permits = |port| reach.permits(IpProtocol::Tcp, SocketAddr::new(address, port));
        assert_eq!(permits(1), Ok(PermitReason::Proven));
        assert!(permits(2).is_err());
        assert!(reach.permits_address("10.0.0.10".parse().unwrap()).is_err());
    }
}
