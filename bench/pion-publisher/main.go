// Publishers of a Janus VideoRoom on pion/webrtc, built like its examples: one PeerConnection per client, samples
// of a file written to its tracks in real time, pion's default interceptors (sender reports, NACK, transport-cc).
// The cost of throng's publishers is compared with it.
//
// Every second it prints one JSON line with the totals that it has sent; bench/ reads CPU time and memory of the
// process from outside, as for throng.
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
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

type object = map[string]any

var connected, packets, payloadBytes atomic.Int64

// counting counts sent packets, retransmissions included.
type counting struct{ interceptor.NoOp }

func (*counting) NewInterceptor(string) (interceptor.Interceptor, error) { return &counting{}, nil }

func (*counting) BindLocalStream(_ *interceptor.StreamInfo, next interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
		packets.Add(1)
		payloadBytes.Add(int64(len(payload)))
		return next.Write(header, payload, attributes)
	})
}

func newAPI() *webrtc.API {
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		log.Fatal(err)
	}
	registry := &interceptor.Registry{}
	if err := webrtc.RegisterDefaultInterceptors(engine, registry); err != nil {
		log.Fatal(err)
	}
	registry.Add(&counting{})
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry))
}

type publisher struct {
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
	Plugin struct {
		Data struct {
			VideoRoom string `json:"videoroom"`
			Error     string `json:"error"`
		} `json:"data"`
	} `json:"plugindata"`
	Jsep *struct {
		SDP string `json:"sdp"`
	} `json:"jsep"`
	Error *struct {
		Reason string `json:"reason"`
	} `json:"error"`
}

func (p *publisher) send(request object) error {
	p.write.Lock()
	defer p.write.Unlock()
	p.transaction++
	request["transaction"] = fmt.Sprint(p.transaction)
	if p.session != 0 {
		request["session_id"] = p.session
	}
	if p.handle != 0 {
		request["handle_id"] = p.handle
	}
	// Not WriteJSON: it ends the message with a newline, which Janus takes for the beginning of a second request.
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return p.socket.WriteMessage(websocket.TextMessage, text)
}

// await reads until a message satisfies the condition; acks and events before it are skipped.
func (p *publisher) await(wanted func(*message) bool) (*message, error) {
	for {
		m := &message{}
		if err := p.socket.ReadJSON(m); err != nil {
			return nil, err
		}
		if m.Error != nil {
			return nil, fmt.Errorf("janus: %s", m.Error.Reason)
		}
		if m.Plugin.Data.Error != "" {
			return nil, fmt.Errorf("janus: %s", m.Plugin.Data.Error)
		}
		if wanted(m) {
			return m, nil
		}
	}
}

func (p *publisher) ask(request object, wanted func(*message) bool) (*message, error) {
	if err := p.send(request); err != nil {
		return nil, err
	}
	return p.await(wanted)
}

func success(m *message) bool { return m.Janus == "success" }

func (p *publisher) publish(api *webrtc.API, url string, room int, name string, sound, pictures *loop) error {
	dialer := websocket.Dialer{Subprotocols: []string{"janus-protocol"}, HandshakeTimeout: 10 * time.Second}
	socket, _, err := dialer.Dial(url, nil)
	if err != nil {
		return err
	}
	p.socket = socket
	created, err := p.ask(object{"janus": "create"}, success)
	if err != nil {
		return err
	}
	p.session = created.Data.ID
	attached, err := p.ask(object{"janus": "attach", "plugin": "janus.plugin.videoroom"}, success)
	if err != nil {
		return err
	}
	p.handle = attached.Data.ID
	join := object{"request": "join", "ptype": "publisher", "room": room, "display": name}
	joined := func(m *message) bool { return m.Plugin.Data.VideoRoom == "joined" }
	if _, err := p.ask(object{"janus": "message", "body": join}, joined); err != nil {
		return err
	}
	if err := p.offer(api, sound, pictures); err != nil {
		return err
	}
	go p.listen()
	return nil
}

func (p *publisher) offer(api *webrtc.API, sound, pictures *loop) error {
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return err
	}
	start := make(chan struct{})
	var once sync.Once
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			once.Do(func() {
				connected.Add(1)
				close(start)
			})
		}
	})
	for mime, media := range map[string]*loop{webrtc.MimeTypeOpus: sound, webrtc.MimeTypeVP8: pictures} {
		capability := webrtc.RTPCodecCapability{MimeType: mime}
		track, err := webrtc.NewTrackLocalStaticSample(capability, mime[:5], "throng")
		if err != nil {
			return err
		}
		sender, err := pc.AddTrack(track)
		if err != nil {
			return err
		}
		go func() { // RTCP must be read for interceptors to run
			buffer := make([]byte, 1500)
			for {
				if _, _, err := sender.Read(buffer); err != nil {
					return
				}
			}
		}()
		go func() {
			<-start
			ticker := time.NewTicker(media.each)
			for at := 0; ; at++ {
				<-ticker.C
				if track.WriteSample(media.sample(at)) != nil {
					return
				}
			}
		}()
	}
	local, err := pc.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(local); err != nil {
		return err
	}
	<-gathered
	jsep := object{"type": "offer", "sdp": pc.LocalDescription().SDP}
	ask := object{"janus": "message", "body": object{"request": "publish"}, "jsep": jsep}
	answered, err := p.ask(ask, func(m *message) bool { return m.Jsep != nil })
	if err != nil {
		return err
	}
	return pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answered.Jsep.SDP})
}

func (p *publisher) listen() {
	go func() {
		for range time.Tick(25 * time.Second) {
			if p.send(object{"janus": "keepalive"}) != nil {
				return
			}
		}
	}()
	for {
		if _, _, err := p.socket.ReadMessage(); err != nil {
			return
		}
	}
}

func main() {
	url := flag.String("url", "", "Janus WebSocket, ws://host:8188")
	room := flag.Int("room", 1234, "VideoRoom")
	clients := flag.Int("n", 1, "publishers")
	every := flag.Duration("every", 50*time.Millisecond, "between joins")
	last := flag.Duration("for", 30*time.Second, "how long, from the first join")
	ivf := flag.String("video", "", "IVF file of VP8")
	fps := flag.Int("fps", 20, "its frames per second")
	ogg := flag.String("audio", "", "Ogg file of Opus, 20 ms a packet")
	flag.Parse()

	pictures, err := video(*ivf, *fps)
	if err != nil {
		log.Fatal(err)
	}
	sound, err := audio(*ogg)
	if err != nil {
		log.Fatal(err)
	}
	api := newAPI()
	end := time.After(*last)
	go func() {
		for number := range *clients {
			time.Sleep(*every)
			go func() {
				name := fmt.Sprintf("pion-%d", number)
				if err := (&publisher{}).publish(api, *url, *room, name, sound, pictures); err != nil {
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
