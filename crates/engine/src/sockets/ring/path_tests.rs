use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_secs(1_700_000_000) + Duration::from_millis(ms)
}

/// A datagram each millisecond on a path that is stepped each 5 ms: who delivers it.
struct Simulation {
    path: ReceivePath,
    /// Whether the socket leaves to the ring what that has.
    is_left: bool,
    is_forgotten: bool,
    /// By millisecond: how often it was delivered, and how often by the ring.
    delivered: Vec<(u32, u32)>,
    steps: Vec<Step>,
    /// Which datagrams are dropped on the way to the socket.
    is_blocked: fn(u64) -> bool,
}

impl Simulation {
    fn new() -> Self {
        let path = ReceivePath::new(ms(0));
        let (delivered, steps) = Default::default();
        Self { path, is_left: false, is_forgotten: false, delivered, steps, is_blocked: |_| false }
    }

    /// Time goes on until `until`; `act` is called at each tick.
    fn run(&mut self, until: u64, mut act: impl FnMut(&mut ReceivePath, u64)) -> &mut Self {
        let mut in_socket = Vec::new();
        for at in self.delivered.len() as u64..until {
            // What arrives meets the filter of that moment, and both ways are read at the next tick.
            if !self.is_left && !(self.is_blocked)(at) {
                in_socket.push(at);
            }
            self.delivered.push((0, 0));
            if at % 5 != 4 {
                continue;
            }
            for arrived in in_socket.drain(..) {
                let is_delivered = self.is_forgotten || self.path.by_socket(ms(arrived), 100, 7);
                self.delivered[arrived as usize].0 += u32::from(is_delivered);
            }
            for arrived in at - 4..=at {
                if !self.is_forgotten && self.path.by_ring(ms(arrived), 100, 7) {
                    self.delivered[arrived as usize].0 += 1;
                    self.delivered[arrived as usize].1 += 1;
                }
            }
            act(&mut self.path, at);
            if !self.is_forgotten && self.path.is_due(ms(at)) {
                let step = self.path.step(ms(at));
                self.is_left = step == Step::LeaveToRing || self.is_left && step != Step::TakeAll;
                self.is_forgotten |= step == Step::Forget;
                if matches!(step, Step::Differs { .. }) {
                    self.path.give_up();
                }
                self.steps.push(step);
            }
        }
        self
    }

    fn once_each(&self) {
        let wrong: Vec<_> = self.delivered.iter().enumerate().filter(|(_, (count, _))| *count != 1).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    fn by_ring(&self, range: std::ops::Range<usize>) -> u32 {
        self.delivered[range].iter().map(|(_, ring)| ring).sum()
    }
}

#[test]
fn after_both_ways_agree_the_ring_delivers_and_each_datagram_comes_once() {
    let mut all = Simulation::new();
    all.run(3000, |_, _| ()).once_each();
    assert_eq!((all.by_ring(0..1000), all.by_ring(1200..3000)), (0, 1800));
    assert!(all.is_left && all.path.is_settled());
}

#[test]
fn a_check_and_the_end_of_the_ring_cost_no_datagram_and_double_none() {
    for ends_at in (1500..3500).step_by(35) {
        let mut all = Simulation::new();
        all.run(4500, |path, at| {
            if at == 1604 {
                path.check(ms(at));
            }
            if at >= ends_at {
                path.give_up();
            }
        });
        all.once_each();
        assert!(all.is_forgotten && !all.is_left, "{ends_at}");
        assert_eq!(all.by_ring(3700..4500), 0);
    }
}

#[test]
fn a_path_that_ends_while_it_begins_is_whole_as_well() {
    for ends_at in (0..1300).step_by(5) {
        let mut all = Simulation::new();
        all.run(2000, |path, at| {
            if at >= ends_at {
                path.give_up();
            }
        });
        all.once_each();
        assert!(all.is_forgotten && !all.is_left, "{ends_at}");
    }
}

#[test]
fn a_ring_with_more_than_the_socket_gets_is_never_used() {
    let mut all = Simulation::new();
    all.is_blocked = |at| at % 10 == 3;
    all.run(4000, |_, _| ());
    let differs = all.steps.iter().find(|step| matches!(step, Step::Differs { .. }));
    assert!(matches!(differs, Some(Step::Differs { ring: 1000, socket: 900 })), "{differs:?}");
    assert_eq!(all.by_ring(0..2000), 0);
}

#[test]
fn a_rule_that_comes_later_is_found_by_a_check() {
    let mut all = Simulation::new();
    all.is_blocked = |at| at >= 2000 && at % 10 == 3;
    all.run(6000, |path, at| {
        if at % 1000 == 4 {
            path.check(ms(at));
        }
    });
    assert!(all.steps.iter().any(|step| matches!(step, Step::Differs { .. })), "{:?}", all.steps);
}

#[test]
fn drops_of_the_generator_disprove_nothing() {
    let mut all = Simulation::new();
    all.is_blocked = |at| at < 1400 && at % 10 == 3;
    all.run(4500, |path, at| {
        if at < 1400 {
            path.dropped();
        }
    });
    assert!(all.path.is_settled() && all.by_ring(4000..4500) == 500, "{:?}", all.steps);
}

#[test]
fn too_few_datagrams_prove_nothing() {
    let mut path = ReceivePath::new(ms(0));
    for at in (0..10_000).step_by(100) {
        assert!(path.by_socket(ms(at), 100, 7) && !path.by_ring(ms(at), 100, 7));
        if path.is_due(ms(at)) {
            assert_eq!(path.step(ms(at)), Step::Wait);
        }
    }
    assert!(path.is_proving());
}

#[test]
fn a_wall_clock_that_is_set_costs_a_settled_path_nothing() {
    let mut all = Simulation::new();
    all.run(2000, |_, _| ());
    // Set back by the whole time, and ahead by an hour.
    for at in [ms(3), ms(3_600_000)] {
        assert!(all.path.by_ring(at, 100, 7) && all.path.by_socket(at, 100, 7));
    }
}
