//! Network namespaces and control groups: where the watched processes are.

use super::cgroup::{self, Cgroup};
use super::net::Net;
use super::{Sampler, facts, namespace};

/// Maximum number of network namespaces, and of control groups.
const PLACES_MAX: usize = 16;

impl Sampler {
    /// Reads the network namespaces and control groups of the watched processes; without targets,
    /// this process's namespace.
    pub(super) fn read_places(&mut self) {
        self.open_places();
        let mut has_drops = std::mem::take(&mut self.has_drops);
        for net in &mut self.nets {
            let sink = net.sink(&self.sink);
            has_drops |= net.read(&sink, &mut self.reader, &self.units, true);
            let inside =
                self.processes.values().filter(|process| process.namespace == Some(net.namespace));
            let names = inside.map(|process| (process.pid, process.name.to_string())).collect();
            net.read_sockets(&sink, &mut self.reader, &mut self.failures, has_drops, &names);
        }
        for cgroup in &mut self.cgroups {
            cgroup.read(&self.sink, &mut self.reader, &self.units);
        }
    }

    /// Opens the namespaces and control groups of new processes. Those of ended processes stay
    /// open: a server that restarts is back in a moment, and the kernel's counters continue.
    fn open_places(&mut self) {
        let (nets, cgroups, facts) = (&mut self.nets, &mut self.cgroups, &mut self.facts);
        let (sink, reader, failures) = (&self.sink, &mut self.reader, &mut self.failures);
        for process in self.processes.values_mut().filter(|process| process.is_place_due(self.pass))
        {
            let pid = process.pid;
            let namespace = namespace::of(pid).unwrap_or(0);
            process.namespace = Some(namespace);
            if namespace != 0
                && !nets.iter().any(|net| net.namespace == namespace)
                && nets.len() < PLACES_MAX
            {
                let label = (!nets.is_empty()).then_some(&*process.name);
                let net = Net::open(pid, namespace, label, sink, failures);
                facts::add_network_facts(facts, label, &net.settings);
                nets.push(net);
            }
            let Some(path) = cgroup::of(reader, pid) else { continue };
            process.cgroup = Some(path.as_str().into());
            let cgroup = match cgroups.iter().position(|cgroup| cgroup.path == path) {
                None if cgroups.len() >= PLACES_MAX => continue,
                None => cgroups.push_mut(Cgroup::open(pid, path, sink, reader, failures)),
                Some(place) => {
                    let Some(cgroup) = cgroups.get_mut(place) else { continue };
                    cgroup.follow(pid, sink, reader, failures);
                    cgroup
                }
            };
            for ancestor in cgroup.tighter_ancestors(reader) {
                if cgroups.len() < PLACES_MAX
                    && !cgroups.iter().any(|cgroup| cgroup.path == ancestor)
                {
                    cgroups.push(Cgroup::open(pid, ancestor, sink, reader, failures));
                }
            }
        }
        if nets.is_empty() && self.finder.targets().is_empty() {
            let own = std::process::id();
            nets.push(Net::open(own, namespace::of(own).unwrap_or(0), None, sink, failures));
        }
    }
}
