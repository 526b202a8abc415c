//! What a media server's host does while the crowd is in: counters of the machine, its processes and threads,
//! profiles, logs and endpoints, as rows of the run.

pub mod profiler;
