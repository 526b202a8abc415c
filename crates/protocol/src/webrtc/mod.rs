//! WebRTC: a session on str0m (ICE, DTLS, SDP) with our own media path (SRTP, feedback, meters).
