//! Publishers by RTMP and SRT.

use throng_observation::Url;

use super::media::fed;
use super::{Seat, TargetFactory};
use crate::ingest::{self, IngestProtocol};
use crate::participant::Participant;

impl TargetFactory {
    pub(super) fn ingest(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        url: &Url,
        protocol: IngestProtocol,
    ) -> Box<dyn Participant> {
        let burns_clock = role.publish.as_ref().is_some_and(|publish| publish.burns_clock);
        let mut config = ingest::Config { url: url.clone(), protocol, burns_clock, chosen: None };
        if config.needs_ffmpeg() {
            config.chosen = self.servers.take_turn();
        }
        let media = fed(role, number, &self.conference.clips);
        Box::new(ingest::Publisher::new(config, media, self.options(number)))
    }
}
