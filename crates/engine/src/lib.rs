//! Gives participants sockets and the time, and collects what they see.
