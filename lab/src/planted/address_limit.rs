//! An HTTP origin that takes only so many connections of each address: a crowd behind one address
//! meets that rule, which says nothing of the capacity, and a crowd of many addresses does not.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use throng_sim::nginx::Nginx;
use throng_sim::rtsp::MediaFile;

use super::Planted;
use crate::search::{Answer, Lab, Outcome};

/// Connections of each address.
const MAX: u32 = 18;
/// Times that a clip of 10 s follows itself: more than a search of the usual budget plays.
const TURNS: &str = "60";

pub(super) const PLANTED: Planted = Planted {
    name: "limit of an address",
    what: "nginx, limit_conn of 18 for each address (429, Retry-After), viewers of one address",
    expects: &["address_limit"],
    verdict: "found",
    is_short: false,
    plant,
};

/// The same rule, with a crowd of 30 addresses: no limit within the range of the search.
pub(super) const MANY_ADDRESSES: Planted = Planted {
    name: "many addresses",
    what: "nginx, limit_conn of 18 for each address, up to 30 viewers of 30 addresses",
    expects: &[],
    verdict: "at_least",
    is_short: false,
    plant: plant_many_addresses,
};

fn plant(lab: &Lab) -> anyhow::Result<Outcome> {
    let answer = searched(lab, "address-limit", &["--ceiling", "60"])?;
    let answer = answer.saying("address_limit", &["Retry-After: 30", "--source-ip"]);
    let answer = answer.never_saying(&["a maximum of about", "licence"]);
    Ok(Outcome { answer, truth: Some(f64::from(MAX)) })
}

fn plant_many_addresses(lab: &Lab) -> anyhow::Result<Outcome> {
    let more = ["--ceiling", "30", "--source-ip", "127.0.0.2-127.0.0.31"];
    Ok(Outcome { answer: searched(lab, "many-addresses", &more)?, truth: Some(30.0) })
}

fn searched(lab: &Lab, name: &str, more: &[&str]) -> anyhow::Result<Answer> {
    let site = tempfile::tempdir()?;
    film(&site.path().join("film.mp4"))?;
    let rule = format!(
        "error_page 429 @later; \
         location / {{ limit_conn addresses {MAX}; limit_conn_status 429; }} \
         location @later {{ default_type text/plain; add_header Retry-After 30 always; \
         return 429 \"too many connections of your address\"; }}"
    );
    let nginx = Nginx::with(site.path(), &rule)?;
    let url = format!("http://{}/film.mp4", nginx.plain_address());
    lab.find(None, name, &url, &format!("pid={}", nginx.pid()), more)
}

/// A film that no viewer has downloaded when it leaves: a connection counts while it is sent to.
fn film(path: &Path) -> anyhow::Result<()> {
    let clip = MediaFile::H264.path()?;
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-nostdin", "-stream_loop", TURNS, "-i"]).arg(clip);
    command.args(["-c", "copy", "-movflags", "+faststart"]).arg(path);
    let output = command.output().context("ffmpeg")?;
    ensure!(output.status.success(), "ffmpeg: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
