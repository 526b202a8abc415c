//! The transport below an HTTP connection, as its figures are read.

use throng_protocol::participant::TransportState;

use crate::sockets::stream::TcpProbe;

/// A connection's number within its participant, and access to its figures.
#[derive(Clone)]
pub(super) struct Transport {
    number: u32,
    below: Below,
}

#[derive(Clone)]
enum Below {
    Tcp(TcpProbe),
    Quic(quinn::Connection),
}

impl Transport {
    pub(super) fn tcp(number: u32, probe: TcpProbe) -> Self {
        Self { number, below: Below::Tcp(probe) }
    }

    pub(super) fn quic(number: u32, connection: quinn::Connection) -> Self {
        Self { number, below: Below::Quic(connection) }
    }

    /// The figures of this moment, or the last ones of a connection that is closed.
    pub(super) fn state(&self) -> Option<TransportState> {
        let connection = self.number;
        match &self.below {
            Below::Tcp(probe) => {
                let info = probe.info()?;
                Some(TransportState {
                    connection,
                    round_trip_us: info.round_trip_us,
                    retransmitted: info.retransmitted.map(u64::from),
                    received_out_of_order: info.received_out_of_order.map(u64::from),
                    received_bytes: info.received_bytes,
                })
            }
            Below::Quic(quic) => {
                let stats = quic.stats();
                Some(TransportState {
                    connection,
                    round_trip_us: Some(stats.path.rtt.as_micros().try_into().unwrap_or(u32::MAX)),
                    // What was in a lost packet is sent again in another one.
                    retransmitted: Some(stats.path.lost_packets),
                    received_out_of_order: None,
                    received_bytes: Some(stats.udp_rx.bytes),
                })
            }
        }
    }
}
