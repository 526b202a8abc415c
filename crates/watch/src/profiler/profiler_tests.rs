use super::*;
use throng_observation::RunTime;
use throng_observation::host::HostId;

#[test]
fn a_sampling_that_is_dropped_ends() {
    let options = Options { method: Some(ProfileMethod::ThreadState), ..Options::default() };
    let before = processes::tree::threads(std::process::id()).len();
    for _ in 0..20 {
        drop(start(&[std::process::id()], options.clone()).unwrap());
    }
    // Other tests have threads too; twenty of these would show.
    assert!(processes::tree::threads(std::process::id()).len() < before + 20);
}

#[test]
fn a_profile_contains_its_host_moment_and_start() {
    let options = Options {
        host: HostId(3),
        moment: "fail".into(),
        started_at: RunTime(7),
        frequency_hz: 5,
        method: Some(ProfileMethod::ThreadState),
        ..Options::default()
    };
    let profile = start(&[std::process::id()], options).unwrap().stop();
    assert_eq!(
        (profile.host, profile.moment.as_str(), profile.started_at),
        (HostId(3), "fail", RunTime(7))
    );
    assert_eq!(profile.frequency_hz, 5);
    let in_range = |frame: &u32| (*frame as usize) < profile.frames.len();
    assert!(profile.stacks.iter().all(|stack| stack.frames.iter().all(in_range)));
}
