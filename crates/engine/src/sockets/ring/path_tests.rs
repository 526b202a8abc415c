use std::net::Ipv4Addr;

use super::*;

const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 7);

/// How late the ring hands datagrams over.
const RING_LATE_MS: u64 = 12;

fn ms(ms: u64) -> Duration {
    Duration::from_secs(1_700_000_000) + Duration::from_millis(ms)
}

/// A datagram each millisecond from [`PEER`] on a path that is stepped each 5 ms: who delivers it.
struct Simulation {
    path: ReceivePath,
    /// Whether the socket leaves to the ring what that has.
    is_left: bool,
    is_forgotten: bool,
    /// By millisecond: how often it was delivered, and how often by the ring.
    delivered: Vec<(u32, u32)>,
    /// The datagrams in the order of their delivery.
    order: Vec<u64>,
    in_socket: Vec<u64>,
    in_ring: Vec<u64>,
    steps: Vec<Step>,
    /// Which datagrams are dropped on the way to the socket.
    is_blocked: fn(u64) -> bool,
    /// Which datagrams are in no ring: the filter lets them through.
    is_beside: fn(u64) -> bool,
    /// From this tick on neither way is read for so long.
    stall: (u64, u64),
    start: Instant,
}

impl Simulation {
    fn new() -> Self {
        let start = Instant::now();
        let path = ReceivePath::new(PEER.ip(), Moment { now: start, unix: ms(0), heard: ms(0) });
        let (delivered, steps, order, in_socket, in_ring) = Default::default();
        Self {
            path,
            is_left: false,
            is_forgotten: false,
            delivered,
            order,
            in_socket,
            in_ring,
            steps,
            is_blocked: |_| false,
            is_beside: |_| false,
            stall: (0, 0),
            start,
        }
    }

    fn moment(&self, at: u64) -> Moment {
        // Later than what was just read.
        let after = |at: u64| ms(at) + Duration::from_micros(500);
        Moment {
            now: self.start + Duration::from_millis(at),
            unix: after(at),
            heard: after(at.saturating_sub(RING_LATE_MS)),
        }
    }

    /// Time goes on until `until`; `act` is called at each tick.
    fn run(
        &mut self,
        until: u64,
        mut act: impl FnMut(&mut ReceivePath, u64, Instant),
    ) -> &mut Self {
        for at in self.delivered.len() as u64..until {
            // What arrives meets the filter of that moment, and both ways are read at the next
            // tick.
            let is_beside = (self.is_beside)(at);
            if (!self.is_left || is_beside) && !(self.is_blocked)(at) {
                self.in_socket.push(at);
            }
            if !is_beside {
                self.in_ring.push(at);
            }
            self.delivered.push((0, 0));
            let (stalls_at, stalls_for) = self.stall;
            if at % 5 != 4 || (stalls_at..stalls_at + stalls_for).contains(&at) {
                continue;
            }
            if !self.path.holds_socket() {
                self.read_socket();
            }
            self.read_ring(at);
            let moment = self.moment(at);
            act(&mut self.path, at, moment.now);
            if !self.is_forgotten && self.path.is_due(moment.now) {
                self.step(moment);
            }
        }
        self
    }

    fn read_socket(&mut self) {
        for arrived in std::mem::take(&mut self.in_socket) {
            if self.is_forgotten || self.path.by_socket(ms(arrived), 100, PEER) {
                self.delivered[arrived as usize].0 += 1;
                self.order.push(arrived);
            }
        }
    }

    /// The same of datagrams with arrival times of their own.
    fn read_by_socket(&mut self, in_socket: &mut Vec<(u64, Duration)>) {
        for (number, arrived) in in_socket.drain(..) {
            let is_delivered = self.is_forgotten || self.path.by_socket(arrived, 100, PEER);
            self.delivered[number as usize].0 += u32::from(is_delivered);
        }
    }

    fn read_ring(&mut self, at: u64) {
        let is_there = |arrived: &mut u64| *arrived + RING_LATE_MS <= at;
        for arrived in self.in_ring.extract_if(.., is_there) {
            if !self.is_forgotten && self.path.by_ring(ms(arrived), 100, PEER) {
                self.delivered[arrived as usize].0 += 1;
                self.delivered[arrived as usize].1 += 1;
                self.order.push(arrived);
            }
        }
    }

    fn step(&mut self, moment: Moment) {
        let step = self.path.step(moment);
        self.is_left = step == Step::LeaveToRing || self.is_left && step != Step::TakeAll;
        self.is_forgotten |= step == Step::Forget;
        match step {
            Step::Read => self.read_socket(),
            Step::Differs { .. } => self.path.give_up(),
            _ => {}
        }
        self.steps.push(step);
    }

    /// Each datagram came once and in order; the last may be still to come.
    fn once_each(&self) {
        let known = self.delivered.len().saturating_sub(40);
        let wrong: Vec<_> = self.delivered[..known]
            .iter()
            .enumerate()
            .filter(|(_, (count, _))| *count != 1)
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(self.delivered.iter().all(|(count, _)| *count <= 1), "none comes twice");
        assert!(
            self.order.is_sorted(),
            "{:?}",
            self.order.windows(2).find(|pair| pair[0] > pair[1])
        );
    }

    fn by_ring(&self, range: std::ops::Range<usize>) -> u32 {
        self.delivered[range].iter().map(|(_, ring)| ring).sum()
    }
}

#[test]
fn after_both_ways_agree_the_ring_delivers_and_each_datagram_comes_once() {
    let mut all = Simulation::new();
    all.run(3000, |_, _, _| ()).once_each();
    assert_eq!((all.by_ring(0..1000), all.by_ring(1200..2900)), (0, 1700));
    assert!(all.is_left && all.path.is_settled());
}

/// A check begins at 1,704 ms, and the ring is given up at any of these times.
fn given_up_at(ends_at: u64) -> Simulation {
    let mut all = Simulation::new();
    all.stall = (ends_at, 180);
    all.run(5000, |path, at, now| {
        if at == 1704 {
            path.check(now);
        }
        if at >= ends_at {
            path.give_up();
        }
    });
    all
}

#[test]
fn a_check_and_the_end_of_the_ring_cost_no_datagram_and_double_none_also_beside_a_stall() {
    for ends_at in (0..4200).step_by(35) {
        let all = given_up_at(ends_at);
        all.once_each();
        assert!(all.is_forgotten && !all.is_left, "{ends_at}");
        assert_eq!(all.by_ring(4700..5000), 0);
    }
}

#[test]
fn a_check_that_agrees_leads_back_to_the_ring() {
    let mut all = Simulation::new();
    all.run(5000, |path, at, now| {
        if at == 1704 {
            path.check(now);
        }
    });
    all.once_each();
    assert_eq!(
        (all.by_ring(1200..1704), all.by_ring(2000..2800), all.by_ring(3600..4900)),
        (504, 0, 1300)
    );
}

#[test]
fn what_only_the_socket_has_is_delivered_while_it_is_checked() {
    // From 2,000 ms on every second datagram comes another way.
    let mut all = Simulation::new();
    all.is_beside = |at| at >= 2000 && at.is_multiple_of(2);
    all.run(7000, |path, at, now| {
        if at == 2104 {
            path.check(now);
        }
    });
    let lost: Vec<_> =
        (0..).zip(&all.delivered).filter(|(_, (count, _))| *count != 1).map(|(at, _)| at).collect();
    assert!(lost.len() <= 3 && lost.iter().all(|at: &u64| (2104..2115).contains(at)), "{lost:?}");
    let differs = all.steps.iter().find(|step| matches!(step, Step::Differs { .. }));
    assert!(matches!(differs, Some(Step::Differs { ring: 500, socket: 1000 })), "{differs:?}");
    assert!(all.is_forgotten);
}

#[test]
fn a_ring_with_more_than_the_socket_gets_is_never_used() {
    let mut all = Simulation::new();
    all.is_blocked = |at| at % 10 == 3;
    all.run(4000, |_, _, _| ());
    let differs = all.steps.iter().find(|step| matches!(step, Step::Differs { .. }));
    assert!(matches!(differs, Some(Step::Differs { ring: 1000, socket: 900 })), "{differs:?}");
    assert_eq!(all.by_ring(0..2000), 0);
}

#[test]
fn a_rule_that_comes_later_is_found_by_a_check() {
    let mut all = Simulation::new();
    all.is_blocked = |at| at >= 2000 && at % 10 == 3;
    all.run(8000, |path, at, now| {
        if at % 1000 == 4 {
            path.check(now);
        }
    });
    assert!(all.steps.iter().any(|step| matches!(step, Step::Differs { .. })), "{:?}", all.steps);
}

#[test]
fn drops_of_the_generator_disprove_nothing() {
    let mut all = Simulation::new();
    all.is_blocked = |at| at < 1400 && at % 10 == 3;
    all.run(4500, |path, at, _| {
        if at < 1400 {
            path.dropped();
        }
    });
    assert!(all.path.is_settled() && all.by_ring(4000..4400) == 400, "{:?}", all.steps);
}

#[test]
fn a_ring_that_drops_what_the_socket_gets_again_and_again_is_left() {
    let mut all = Simulation::new();
    // The kernel cannot write these into a ring.
    all.is_beside = |at| at % 3 == 0;
    all.run(6000, |path, _, _| path.dropped()).once_each();
    assert!(all.is_forgotten && all.by_ring(0..6000) == 0, "{:?}", all.steps);
}

#[test]
fn datagrams_of_others_prove_and_disprove_nothing() {
    let other = SocketAddr::new(Ipv4Addr::new(198, 51, 100, 9).into(), 7);
    let mut all = Simulation::new();
    // The kernel refuses them: they are in the ring alone.
    all.run(3000, |path, at, _| {
        path.by_ring(ms(at), 50, other);
    });
    assert!(all.path.is_settled(), "{:?}", all.steps);
}

#[test]
fn a_socket_that_is_not_left_to_the_ring_by_its_filter_leaves_the_ring() {
    let mut all = Simulation::new();
    let mut gets_all = |path: &mut ReceivePath, at: u64, _| {
        // The filter lets through what the ring has as well.
        if matches!(path.state, State::Emptying { .. } | State::Settled) {
            path.by_socket(ms(at), 100, PEER);
        }
    };
    all.run(3000, &mut gets_all).once_each();
    assert!(all.is_forgotten, "{:?}", all.steps);
}

#[test]
fn too_few_datagrams_prove_nothing() {
    let mut all = Simulation::new();
    for at in (0..10_000).step_by(100) {
        assert!(all.path.by_socket(ms(at), 100, PEER) && !all.path.by_ring(ms(at), 100, PEER));
        let moment = all.moment(at);
        if all.path.is_due(moment.now) {
            all.step(moment);
        }
    }
    assert!(all.path.is_proving() && all.steps.iter().all(|step| *step == Step::Wait));
}

#[test]
fn a_wall_clock_that_is_set_costs_less_than_a_second_and_doubles_next_to_nothing() {
    // At each of these times, in each state, it is set back by a day or ahead by one: ring and
    // socket have the same times.
    let day = Duration::from_secs(86_400);
    for set_at in (4..4400_u64).step_by(55) {
        for base in [ms(0) - day, ms(0) + day] {
            let mut all = Simulation::new();
            all.run(set_at / 5 * 5, |path, at, now| {
                if at == 1704 {
                    path.check(now);
                }
            });
            let set_at = all.delivered.len() as u64;
            let mut in_ring: Vec<_> = all.in_ring.drain(..).map(|at| (at, ms(at))).collect();
            let mut in_socket: Vec<_> = all.in_socket.drain(..).map(|at| (at, ms(at))).collect();
            for at in set_at..set_at + 3000 {
                let arrived = base + Duration::from_millis(at);
                if !all.is_left {
                    in_socket.push((at, arrived));
                }
                in_ring.push((at, arrived));
                all.delivered.push((0, 0));
                if at % 5 != 4 {
                    continue;
                }
                if !all.path.holds_socket() {
                    all.read_by_socket(&mut in_socket);
                }
                for (number, arrived) in
                    in_ring.extract_if(.., |(sent, _)| *sent + RING_LATE_MS <= at)
                {
                    all.delivered[number as usize].0 +=
                        u32::from(all.path.by_ring(arrived, 100, PEER));
                }
                let unix = arrived + Duration::from_micros(500);
                let heard = unix - Duration::from_millis(RING_LATE_MS);
                let moment = Moment { now: all.start + Duration::from_millis(at), unix, heard };
                if all.path.is_due(moment.now) {
                    all.step(moment);
                    if all.steps.last() == Some(&Step::Read) {
                        all.read_by_socket(&mut in_socket);
                    }
                }
            }
            let known = &all.delivered[..all.delivered.len() - 40];
            let lost = known.iter().filter(|(count, _)| *count == 0).count();
            let doubled = known.iter().filter(|(count, _)| *count > 1).count();
            // What was in the ring when the clock was set back immediately before a change.
            assert!(
                doubled as u64 <= RING_LATE_MS,
                "set at {set_at} ms: {doubled} twice, {:?}",
                all.steps
            );
            assert!(lost <= 300, "set at {set_at} ms: {lost} lost, {:?}", all.steps);
        }
    }
}
