//! Simulcast on the real Janus VideoRoom: the received layer is the requested one, and switch times
//! are measured.

use throng_observation::{Layer, MediaKind};
use throng_sim::janus::{Janus, ROOM};
use throng_sim::namespace::Namespace;
use throng_sim::requires_root;
use throng_store::RunFolder;

use crate::conference::ADDRESS;
use crate::throng::{Running, valid};

#[test]
fn layers_change_on_janus_when_asked_for() {
    if !requires_root() {
        return;
    }
    let namespace = Namespace::with_veth("layers", ADDRESS).unwrap();
    let _janus = Janus::start(&namespace, ADDRESS).unwrap();
    let url = format!("janus+ws://{ADDRESS}:8188/videoroom/{ROOM}");
    let publish = r#"crowd.publish={simulcast=["144p","240p","360p"]}"#;
    let layers = r#"crowd.layers=[{layer="low"},{after="6s",layer="high"},{after="10s",layer="off"},{after="12s",layer="low"}]"#;
    let view = ["view", &url, "-n", "3", "--every", "300ms", "--for", "16s", "--set", publish];
    let (ran, ()) = valid(|| {
        (Running::start(Some(&namespace), &[&view[..], &["--set", layers]].concat()).wait(), ())
    });
    let run = RunFolder::read(ran.folder()).unwrap();
    // Each of three participants receives two others, and requests another layer twice meanwhile.
    let of =
        |layer| run.layer_switches.iter().filter(move |row| row.layer == layer).collect::<Vec<_>>();
    let (up, down) = (of(Layer::High), of(Layer::Low));
    assert_eq!((up.len(), down.len()), (6, 6), "{:?}\n{ran}", run.layer_switches);
    for (rows, size) in [(up, (640, 360)), (down, (256, 144))] {
        for row in rows {
            assert_eq!((row.width, row.height), size, "{row:?}\n{ran}");
            let took_ms = row.shown_at.map(|at| (at.0 - row.requested_at.0) / 1_000);
            assert!(took_ms.is_some_and(|ms| (0..3_500).contains(&ms)), "{row:?}\n{ran}");
        }
    }
    // A stopped video brings no packets except those already under way, and the audio continues.
    let came = |kind, second: i64| -> u64 {
        let rows = run.series.iter().filter(|row| row.kind == Some(kind) && row.second == second);
        rows.map(|row| row.counters.packets_original).sum()
    };
    let (playing, stopped) = (came(MediaKind::Video, 8), came(MediaKind::Video, 11));
    assert!(stopped * 20 < playing, "{stopped} packets of video after {playing} a second\n{ran}");
    assert!(came(MediaKind::Audio, 11) > 0, "{ran}");
}
