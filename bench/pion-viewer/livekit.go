package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"
)

var (
	liveKitKey    = flag.String("livekit-key", "", "LiveKit: the name of the API key that signs the tokens")
	liveKitSecret = flag.String("livekit-secret", "", "LiveKit: its secret")
)

// What a subscriber needs of LiveKit's signalling, by the field numbers of its public protocol definition
// (livekit_rtc.proto, protocol version 16).
const (
	responseJoin    = 1
	responseOffer   = 3
	responseTrickle = 4
	responseLeave   = 8
	requestAnswer   = 2
	requestPing     = 16
	// Of JoinResponse: seconds from ping to ping.
	joinPingInterval = 11
	// Of SessionDescription.
	descriptionType, descriptionSDP, descriptionID = 1, 2, 3
	// Of TrickleRequest: JSON, and the peer connection that it is for.
	trickleInit, trickleTarget = 1, 2
	targetSubscriber           = 1
)

// liveKitViewer is a participant that publishes nothing and is subscribed to everything: it has only the peer
// connection that the server offers.
type liveKitViewer struct {
	socket socket
	pc     *webrtc.PeerConnection
	// early has the candidates that came before the first offer.
	early   []webrtc.ICECandidateInit
	offered bool
}

// watchLiveKit joins a room, `/ROOM`. Every message of the server is handled by one goroutine, in order.
func watchLiveKit(api *webrtc.API, target *url.URL, number int) error {
	server := url.URL{Scheme: target.Scheme, Host: target.Host, Path: "/rtc"}
	server.RawQuery = "protocol=16&auto_subscribe=1&adaptive_stream=0"
	identity := fmt.Sprintf("pion-%d-%d", number, os.Getpid())
	token := token(strings.TrimPrefix(target.Path, "/"), identity)
	dialer := websocket.Dialer{HandshakeTimeout: handshakeMax}
	conn, _, err := dialer.Dial(server.String(), http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		return err
	}
	v := &liveKitViewer{socket: socket{Conn: conn}}
	if v.pc, err = newConnection(api); err != nil {
		return err
	}
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return err
		}
		if err := v.handle(message); err != nil {
			return err
		}
	}
}

func (v *liveKitViewer) handle(message []byte) error {
	return fields(message, func(response field) error {
		switch response.number {
		case responseJoin:
			return v.joined(response.bytes)
		case responseOffer:
			return v.answer(response.bytes)
		case responseTrickle:
			return v.trickled(response.bytes)
		case responseLeave:
			return errors.New("livekit: the server asked the viewer to leave")
		}
		return nil
	})
}

// joined begins to ping at the server's interval.
func (v *liveKitViewer) joined(join []byte) error {
	every := 10 * time.Second
	err := fields(join, func(f field) error {
		if f.number == joinPingInterval && f.varint > 0 {
			every = time.Duration(f.varint) * time.Second
		}
		return nil
	})
	go func() {
		for now := range time.Tick(every) {
			ping := appendVarintField(nil, 1, uint64(now.UnixMilli()))
			if v.socket.send(websocket.BinaryMessage, appendField(nil, requestPing, ping)) != nil {
				return
			}
		}
	}()
	return err
}

// answer answers the subscriber's offer; a later one is of the same connection.
func (v *liveKitViewer) answer(description []byte) error {
	var offer string
	var id uint64
	err := fields(description, func(f field) error {
		switch f.number {
		case descriptionSDP:
			offer = string(f.bytes)
		case descriptionID:
			id = f.varint
		}
		return nil
	})
	if err != nil {
		return err
	}
	sdp, err := answer(v.pc, offer, v.early)
	if err != nil {
		return err
	}
	v.offered, v.early = true, nil
	said := appendField(nil, descriptionType, []byte("answer"))
	said = appendField(said, descriptionSDP, []byte(sdp))
	said = appendVarintField(said, descriptionID, id)
	return v.socket.send(websocket.BinaryMessage, appendField(nil, requestAnswer, said))
}

func (v *liveKitViewer) trickled(trickle []byte) error {
	var init webrtc.ICECandidateInit
	var target uint64
	err := fields(trickle, func(f field) error {
		switch f.number {
		case trickleInit:
			return json.Unmarshal(f.bytes, &init)
		case trickleTarget:
			target = f.varint
		}
		return nil
	})
	if err != nil || target != targetSubscriber {
		return err
	}
	if !v.offered {
		v.early = append(v.early, init)
		return nil
	}
	return v.pc.AddICECandidate(init)
}

// token is a JWT (HS256) that permits to subscribe in the room, for an hour.
func token(room, identity string) string {
	now := time.Now().Unix()
	claims := object{
		"iss": *liveKitKey, "sub": identity, "name": identity, "nbf": now - 60, "exp": now + 3600,
		"video": object{"room": room, "roomJoin": true, "canPublish": false, "canSubscribe": true},
	}
	encoded := func(part object) string {
		// Strings, numbers and booleans always marshal.
		text, _ := json.Marshal(part)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := encoded(object{"alg": "HS256", "typ": "JWT"}) + "." + encoded(claims)
	sum := hmac.New(sha256.New, []byte(*liveKitSecret))
	sum.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}
