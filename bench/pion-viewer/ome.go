package main

import (
	"fmt"
	"net/url"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"
)

// omeMessage is what OvenMediaEngine says: an offer, a notification, or a refusal with its code.
type omeMessage struct {
	Command string `json:"command"`
	ID      int64  `json:"id"`
	PeerID  int64  `json:"peer_id"`
	Code    int    `json:"code"`
	Error   string `json:"error"`
	SDP     struct {
		SDP string `json:"sdp"`
	} `json:"sdp"`
	Candidates []webrtc.ICECandidateInit `json:"candidates"`
}

// watchOME plays a stream, `/APP/STREAM`: the server offers, with its candidates beside the description.
func watchOME(api *webrtc.API, target *url.URL, _ int) error {
	dialer := websocket.Dialer{HandshakeTimeout: handshakeMax}
	conn, _, err := dialer.Dial(target.String(), nil)
	if err != nil {
		return err
	}
	s := &socket{Conn: conn}
	if err := s.sendJSON(object{"command": "request_offer"}); err != nil {
		return err
	}
	offer, err := awaitOffer(s)
	if err != nil {
		return err
	}
	pc, err := newConnection(api)
	if err != nil {
		return err
	}
	sdp, err := answer(pc, offer.SDP.SDP, offer.Candidates)
	if err != nil {
		return err
	}
	go s.drain()
	return s.sendJSON(object{
		"command": "answer",
		"id":      offer.ID,
		"peer_id": offer.PeerID,
		"sdp":     object{"type": "answer", "sdp": sdp},
	})
}

func awaitOffer(s *socket) (*omeMessage, error) {
	for {
		m := &omeMessage{}
		if err := s.ReadJSON(m); err != nil {
			return nil, err
		}
		if m.Error != "" || m.Code != 0 && m.Code != 200 {
			return nil, fmt.Errorf("ome: code %d: %s", m.Code, m.Error)
		}
		if m.Command == "offer" {
			return m, nil
		}
	}
}
