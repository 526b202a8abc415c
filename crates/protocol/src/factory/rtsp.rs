//! Viewers and publishers by RTSP.

use throng_scenario::{Account, Endpoint};

use super::media::published;
use super::{Seat, TargetFactory};
use crate::participant::Participant;
use crate::rtsp;

impl TargetFactory {
    pub(super) fn rtsp_viewer(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        endpoint: &Endpoint,
        account: Option<&Account>,
    ) -> Box<dyn Participant> {
        let config = self.rtsp(endpoint, account);
        let (playback, options) = (role.player.script(number), self.options(number));
        Box::new(rtsp::Viewer::with_playback(config, playback, options))
    }

    pub(super) fn rtsp_publisher(
        &self,
        Seat { number, role, .. }: Seat<'_>,
        endpoint: &Endpoint,
        account: Option<&Account>,
    ) -> Box<dyn Participant> {
        let media = published(role, number, &self.conference.clips);
        let config = self.rtsp(endpoint, account);
        Box::new(rtsp::Publisher::new(config, media, self.options(number)))
    }

    fn rtsp(&self, endpoint: &Endpoint, account: Option<&Account>) -> rtsp::Config {
        let credentials = account.map(|account| rtsp::Credentials {
            username: account.name.clone(),
            password: account.password.clone(),
        });
        rtsp::Config {
            url: endpoint.rtsp_url().unwrap_or_else(|| endpoint.url.clone()),
            credentials,
            transport: self.rtsp_transport,
        }
    }
}
