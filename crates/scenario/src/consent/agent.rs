//! Consent by presence: the owner runs an agent on the target, and as long as it runs, load is welcome there.

use std::net::IpAddr;

use crate::scenario::Caps;

/// What the agent on a target agrees to.
///
/// It holds for the address at which the agent answered, and for no other that it may name: who runs an agent somewhere
/// must not be able to point a run at somebody else. It is good only while the agent is there.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentProof {
    /// Where the agent answered, as this host reached it.
    pub answered_at: IpAddr,
    /// The ports that load may be sent to.
    pub ports: Vec<u16>,
    /// The owner's limits; each one given lowers ours.
    pub caps: Caps,
}

/// Why an agent is no proof for a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AgentProofError {
    /// It answers elsewhere.
    #[error("the agent answers at {agent}, the target is at {target}: run the agent on the target itself")]
    OtherAddress {
        /// Where it answers.
        agent: IpAddr,
        /// Where load was to go.
        target: IpAddr,
    },
    /// Its owner has not named this port.
    #[error("the agent's owner has not agreed to load on port {0}: start it with --allow-load {0}")]
    OtherPort(u16),
}

impl AgentProof {
    /// Whether it is the proof for signalling at `address` and `port`.
    ///
    /// # Errors
    /// With what does not fit.
    pub fn validate(&self, address: IpAddr, port: u16) -> Result<(), AgentProofError> {
        let (agent, target) = (self.answered_at.to_canonical(), address.to_canonical());
        if agent != target {
            return Err(AgentProofError::OtherAddress { agent, target });
        }
        if self.ports.contains(&port) { Ok(()) } else { Err(AgentProofError::OtherPort(port)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::{AddressPolicy, PermitReason, Refusal};

    #[test]
    fn an_agent_speaks_for_its_own_address_and_the_ports_it_names() {
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let proof = AgentProof { answered_at: at("203.0.113.9"), ports: vec![8188], caps: Caps::NONE };
        assert_eq!(proof.validate(at("203.0.113.9"), 8188), Ok(()));
        assert_eq!(proof.validate(at("::ffff:203.0.113.9"), 8188), Ok(()));
        assert_eq!(proof.validate(at("203.0.113.9"), 80), Err(AgentProofError::OtherPort(80)));
        assert!(matches!(
            proof.validate(at("203.0.113.10"), 8188),
            Err(AgentProofError::OtherAddress { .. })
        ));
        let mut reach = AddressPolicy::default();
        reach.prove_by_agent(&proof);
        assert_eq!(reach.permits(at("203.0.113.9")), Ok(PermitReason::Proven));
        assert_eq!(reach.permits(at("203.0.113.10")), Err(Refusal::PublicNotProven(at("203.0.113.10"))));
        reach.withdraw();
        assert!(reach.permits(at("203.0.113.9")).is_err());
    }

    #[test]
    fn an_agent_at_a_private_address_speaks_for_that_one_alone() {
        let address = "10.0.0.9".parse().unwrap();
        let mut reach = AddressPolicy::default();
        reach.prove_by_agent(&AgentProof { answered_at: address, ports: vec![1], caps: Caps::NONE });
        // It answers, so it is a machine that its owner let us watch: that is consent for it alone.
        assert_eq!(reach.permits(address), Ok(PermitReason::Proven));
        assert!(reach.permits("10.0.0.10".parse().unwrap()).is_err());
    }
}
