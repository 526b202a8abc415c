// A Janus Streaming viewer on pion/webrtc, built like OvenRtcTester: one signalling connection and one
// PeerConnection per client; OnTrack starts a loop that reads RTP. The cost of throng's viewers is compared with
// it.
//
// Every second it prints one JSON line with the totals that it has received; bench/ reads CPU time and memory of
// the process from outside, as for throng.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"
)

type object = map[string]any

var connected, packets, payloadBytes atomic.Int64

// newAPI makes the engine that all clients share. Without feedback it is what OvenRtcTester uses: no interceptors, so
// no RTCP at all; with feedback it is pion's default: receiver reports, NACK and transport-cc.
func newAPI(feedback bool) *webrtc.API {
	media := &webrtc.MediaEngine{}
	if err := media.RegisterDefaultCodecs(); err != nil {
		log.Fatal(err)
	}
	registry := &interceptor.Registry{}
	if feedback {
		if err := webrtc.RegisterDefaultInterceptors(media, registry); err != nil {
			log.Fatal(err)
		}
	}
	return webrtc.NewAPI(webrtc.WithMediaEngine(media), webrtc.WithInterceptorRegistry(registry))
}

type viewer struct {
	socket      *websocket.Conn
	write       sync.Mutex
	session     uint64
	handle      uint64
	transaction int
}

type message struct {
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

func (v *viewer) send(request object) error {
	v.write.Lock()
	defer v.write.Unlock()
	v.transaction++
	request["transaction"] = fmt.Sprint(v.transaction)
	if v.session != 0 {
		request["session_id"] = v.session
	}
	if v.handle != 0 {
		request["handle_id"] = v.handle
	}
	// Not WriteJSON: it ends the message with a newline, which Janus takes for the beginning of a second request.
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return v.socket.WriteMessage(websocket.TextMessage, text)
}

// await reads until a message satisfies the condition; acks and events before it are skipped.
func (v *viewer) await(wanted func(*message) bool) (*message, error) {
	for {
		m := &message{}
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

func success(m *message) bool { return m.Janus == "success" }

func (v *viewer) watch(api *webrtc.API, url string, mountpoint int) error {
	dialer := websocket.Dialer{Subprotocols: []string{"janus-protocol"}, HandshakeTimeout: 10 * time.Second}
	socket, _, err := dialer.Dial(url, nil)
	if err != nil {
		return err
	}
	v.socket = socket
	if err := v.send(object{"janus": "create"}); err != nil {
		return err
	}
	created, err := v.await(success)
	if err != nil {
		return err
	}
	v.session = created.Data.ID
	if err := v.send(object{"janus": "attach", "plugin": "janus.plugin.streaming"}); err != nil {
		return err
	}
	attached, err := v.await(success)
	if err != nil {
		return err
	}
	v.handle = attached.Data.ID
	if err := v.send(object{"janus": "message", "body": object{"request": "watch", "id": mountpoint}}); err != nil {
		return err
	}
	offered, err := v.await(func(m *message) bool { return m.Jsep != nil })
	if err != nil {
		return err
	}
	if err := v.answer(api, offered.Jsep.SDP); err != nil {
		return err
	}
	go v.listen()
	return nil
}

func (v *viewer) answer(api *webrtc.API, offer string) error {
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return err
	}
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			connected.Add(1)
		}
	})
	pc.OnTrack(read)
	remote := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := pc.SetRemoteDescription(remote); err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	local, err := pc.CreateAnswer(nil)
	if err != nil {
		return err
	}
	if err := pc.SetLocalDescription(local); err != nil {
		return err
	}
	<-gathered
	return v.send(object{
		"janus": "message",
		"body":  object{"request": "start"},
		"jsep":  object{"type": "answer", "sdp": pc.LocalDescription().SDP},
	})
}

// read is the loop of one track, as in OvenRtcTester.
func read(track *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
	go func() { // RTCP must be read for interceptors to run
		for {
			if _, _, err := receiver.ReadRTCP(); err != nil {
				return
			}
		}
	}()
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		packets.Add(1)
		payloadBytes.Add(int64(len(packet.Payload)))
	}
}

func (v *viewer) listen() {
	go func() {
		for range time.Tick(25 * time.Second) {
			if v.send(object{"janus": "keepalive"}) != nil {
				return
			}
		}
	}()
	for {
		if _, _, err := v.socket.ReadMessage(); err != nil {
			return
		}
	}
}

func main() {
	url := flag.String("url", "", "Janus WebSocket, ws://host:8188")
	mountpoint := flag.Int("mountpoint", 1, "streaming mountpoint")
	clients := flag.Int("n", 1, "viewers")
	every := flag.Duration("every", 50*time.Millisecond, "between joins")
	last := flag.Duration("for", 30*time.Second, "how long, from the first join")
	feedback := flag.Bool("feedback", false, "pion's default interceptors: RR, NACK, transport-cc")
	flag.Parse()

	api := newAPI(*feedback)
	end := time.After(*last)
	go func() {
		for range time.NewTicker(*every).C {
			if *clients == 0 {
				return
			}
			*clients--
			go func() {
				if err := (&viewer{}).watch(api, *url, *mountpoint); err != nil {
					log.Print(err)
				}
			}()
		}
	}()
	out := json.NewEncoder(os.Stdout)
	second := time.NewTicker(time.Second)
	for {
		select {
		case <-second.C:
			_ = out.Encode(object{"connected": connected.Load(), "packets": packets.Load(), "bytes": payloadBytes.Load()})
		case <-end:
			return
		}
	}
}
