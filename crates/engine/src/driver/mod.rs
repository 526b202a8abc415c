//! Drives participants: one thread per core, each with its own participants, sockets and timers;
//! nothing is shared.

mod collector_sender;
pub(crate) use collector_sender::{BATCHES_MAX, CollectorSender, DriverEvent};

mod timers;

mod wake_timer;

mod io_context;
pub(crate) use io_context::{IoContext, IoContextConfig};

mod panic_guard;
pub(crate) use panic_guard::install_panic_hook;

mod join_queue;
pub(crate) use join_queue::JoinQueue;

mod slot;

mod slots;

mod event_loop;
pub(crate) use event_loop::{EventLoop, EventLoopConfig};

mod thread_health;
