package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"
)

// janusViewer has one Janus session with one handle of the Streaming plugin.
type janusViewer struct {
	socket      socket
	session     uint64
	handle      uint64
	transaction int
}

type janusMessage struct {
	Janus string `json:"janus"`
	Data  struct {
		ID uint64 `json:"id"`
	} `json:"data"`
	Jsep *struct {
		Type string `json:"type"`
		SDP  string `json:"sdp"`
	} `json:"jsep"`
	Error *struct {
		Reason string `json:"reason"`
	} `json:"error"`
}

func (v *janusViewer) send(request object) error {
	v.transaction++
	request["transaction"] = fmt.Sprint(v.transaction)
	if v.session != 0 {
		request["session_id"] = v.session
	}
	if v.handle != 0 {
		request["handle_id"] = v.handle
	}
	return v.socket.sendJSON(request)
}

// await reads until a message satisfies the condition; acks and events before it are skipped.
func (v *janusViewer) await(wanted func(*janusMessage) bool) (*janusMessage, error) {
	for {
		m := &janusMessage{}
		if err := v.socket.ReadJSON(m); err != nil {
			return nil, err
		}
		if m.Error != nil {
			return nil, fmt.Errorf("janus: %s", m.Error.Reason)
		}
		if wanted(m) {
			return m, nil
		}
	}
}

// created asks for a session or a handle, and returns its id.
func (v *janusViewer) created(request object) (uint64, error) {
	if err := v.send(request); err != nil {
		return 0, err
	}
	m, err := v.await(func(m *janusMessage) bool { return m.Janus == "success" })
	if err != nil {
		return 0, err
	}
	return m.Data.ID, nil
}

// watchJanus plays a mountpoint, `/streaming/ID`: Janus offers, the viewer answers.
func watchJanus(api *webrtc.API, target *url.URL, _ int) error {
	mountpoint, err := strconv.Atoi(strings.TrimPrefix(target.Path, "/streaming/"))
	if err != nil {
		return fmt.Errorf("janus: the path is not /streaming/ID: %w", err)
	}
	server := url.URL{Scheme: target.Scheme, Host: target.Host, Path: "/"}
	dialer := websocket.Dialer{Subprotocols: []string{"janus-protocol"}, HandshakeTimeout: handshakeMax}
	conn, _, err := dialer.Dial(server.String(), nil)
	if err != nil {
		return err
	}
	v := &janusViewer{socket: socket{Conn: conn}}
	if v.session, err = v.created(object{"janus": "create"}); err != nil {
		return err
	}
	if v.handle, err = v.created(object{"janus": "attach", "plugin": "janus.plugin.streaming"}); err != nil {
		return err
	}
	if err := v.send(object{"janus": "message", "body": object{"request": "watch", "id": mountpoint}}); err != nil {
		return err
	}
	offered, err := v.await(func(m *janusMessage) bool { return m.Jsep != nil })
	if err != nil {
		return err
	}
	if err := v.start(api, offered.Jsep.SDP); err != nil {
		return err
	}
	go v.keepAlive()
	go v.socket.drain()
	return nil
}

func (v *janusViewer) start(api *webrtc.API, offer string) error {
	pc, err := newConnection(api)
	if err != nil {
		return err
	}
	sdp, err := answer(pc, offer, nil)
	if err != nil {
		return err
	}
	return v.send(object{
		"janus": "message",
		"body":  object{"request": "start"},
		"jsep":  object{"type": "answer", "sdp": sdp},
	})
}

// keepAlive is the only goroutine that sends once the viewer has started.
func (v *janusViewer) keepAlive() {
	for range time.Tick(25 * time.Second) {
		if v.send(object{"janus": "keepalive"}) != nil {
			return
		}
	}
}
