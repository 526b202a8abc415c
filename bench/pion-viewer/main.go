// A viewer on pion/webrtc, built like OvenRtcTester: one signalling connection and one PeerConnection per client;
// OnTrack starts a loop that reads RTP. The cost of throng's viewers is compared with it.
//
// It takes the URLs that throng takes; the scheme chooses the signalling:
//
//	janus+ws://HOST:8188/streaming/ID            Janus, Streaming plugin (janus.go)
//	whep+http://HOST/PATH                        WHEP, as SRS and throng's stage speak it (whep.go)
//	ws://HOST:3333/APP/STREAM                    OvenMediaEngine (ome.go)
//	livekit+ws://HOST:7880/ROOM                  LiveKit, with -livekit-key and -livekit-secret (livekit.go)
//
// Every second it prints one JSON line with the totals that it has received; bench/ reads CPU time and memory of
// the process from outside, as for throng.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/interceptor"
	"github.com/pion/webrtc/v4"
)

type object = map[string]any

// handshakeMax is how long a server may take to accept a connection.
const handshakeMax = 10 * time.Second

var connected, packets, payloadBytes atomic.Int64

// watch joins as the viewer of that number, and returns when it has sent all that a join needs.
type watch func(api *webrtc.API, target *url.URL, number int) error

// protocols has the signalling of each scheme; with TLS, it ends with one more `s`.
var protocols = map[string]watch{
	"janus+ws":   watchJanus,
	"whep+http":  watchWHEP,
	"ws":         watchOME,
	"livekit+ws": watchLiveKit,
}

// parse splits the URL into that of the server itself and the signalling that its scheme stands for.
func parse(text string) (*url.URL, watch) {
	target, err := url.Parse(text)
	if err != nil {
		log.Fatal(err)
	}
	found, isKnown := protocols[target.Scheme]
	if !isKnown {
		found, isKnown = protocols[strings.TrimSuffix(target.Scheme, "s")]
	}
	if !isKnown {
		log.Fatalf("%s: the scheme is none of janus+ws, whep+http, ws, livekit+ws", text)
	}
	if _, scheme, isPrefixed := strings.Cut(target.Scheme, "+"); isPrefixed {
		target.Scheme = scheme
	}
	return target, found
}

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

// newConnection is a peer connection that counts itself when ICE and DTLS are done, and reads its tracks.
func newConnection(api *webrtc.API) (*webrtc.PeerConnection, error) {
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, err
	}
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			connected.Add(1)
		}
	})
	pc.OnTrack(read)
	return pc, nil
}

// answer applies the server's offer and its candidates outside the offer, and returns the answer with all local
// candidates in it.
func answer(pc *webrtc.PeerConnection, offer string, candidates []webrtc.ICECandidateInit) (string, error) {
	remote := webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}
	if err := pc.SetRemoteDescription(remote); err != nil {
		return "", err
	}
	for _, candidate := range candidates {
		if err := pc.AddICECandidate(candidate); err != nil {
			return "", err
		}
	}
	local, err := pc.CreateAnswer(nil)
	if err != nil {
		return "", err
	}
	return gathered(pc, local)
}

// gathered sets the local description, and returns it when it has all candidates.
func gathered(pc *webrtc.PeerConnection, local webrtc.SessionDescription) (string, error) {
	done := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(local); err != nil {
		return "", err
	}
	<-done
	return pc.LocalDescription().SDP, nil
}

// socket is a viewer's WebSocket, which several goroutines may write to.
type socket struct {
	*websocket.Conn
	write sync.Mutex
}

func (s *socket) send(kind int, message []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.WriteMessage(kind, message)
}

// sendJSON does not use WriteJSON, which ends the message with a newline: Janus takes it for the beginning of a second
// request.
func (s *socket) sendJSON(message object) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return s.send(websocket.TextMessage, text)
}

// drain reads and drops what the server says, until it closes.
func (s *socket) drain() {
	for {
		if _, _, err := s.ReadMessage(); err != nil {
			return
		}
	}
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

func main() {
	address := flag.String("url", "", "what to watch, as throng takes it: janus+ws://, whep+http://, ws:// or livekit+ws://")
	clients := flag.Int("n", 1, "viewers")
	every := flag.Duration("every", 50*time.Millisecond, "between joins")
	last := flag.Duration("for", 30*time.Second, "how long, from the first join")
	feedback := flag.Bool("feedback", false, "pion's default interceptors: RR, NACK, transport-cc")
	flag.Parse()

	api := newAPI(*feedback)
	target, join := parse(*address)
	end := time.After(*last)
	go func() {
		joins := time.NewTicker(*every)
		for number := range *clients {
			<-joins.C
			go func() {
				if err := join(api, target, number); err != nil {
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
