// A WHEP server on pion/webrtc with one planted limit: another implementation and runtime than the stage, in which most limits of the
// lab are planted.
//
// It prints its URL and serves until it is killed. Pictures are VP8 in form only (RFC 7741): a key frame each second, 25
// frames a second, 1 Mbit/s. Each viewer has a goroutine that sends its packets, so that GOMAXPROCS is the limit.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

const (
	framesPerSecond = 25
	keyFrameBytes   = 9_000
	frameBytes      = 4_800
	payloadBytes    = 1_100
	soundEvery      = 20 * time.Millisecond
)

var (
	workPerPacket   = flag.Duration("work-per-packet", 0, "CPU time that each packet to each viewer takes")
	workPerKeyFrame = flag.Duration("work-per-key-frame", 0, "CPU time that each key frame to each viewer takes, at once")
	dropAbove       = flag.Int("drop-above", 0, "media packets a second beyond which packets are dropped before they reach the socket")
	silent          = flag.Bool("silent", false, "no sound")
	serialJoin      = flag.Duration("serial-join", 0, "how long each join takes; one at a time")
)

// burn uses CPU time of this thread for a duration.
func burn(duration time.Duration) {
	for began := time.Now(); time.Since(began) < duration; {
	}
}

// frame is a picture in packets: the same for all viewers.
type frame struct {
	payloads  [][]byte
	isKey     bool
	timestamp uint32
}

// makeFrame cuts a picture of so many bytes into payloads with a VP8 descriptor.
func makeFrame(bytes int, isKey bool) frame {
	body := make([]byte, bytes)
	if _, err := rand.Read(body); err != nil {
		log.Fatal(err)
	}
	body[0] |= 1
	if isKey {
		// Frame tag, start code and a size of 640 by 360 (RFC 6386 section 9.1).
		copy(body, []byte{body[0] &^ 1, 0, 0, 0x9d, 0x01, 0x2a, 0x80, 0x02, 0x68, 0x01})
	}
	result := frame{isKey: isKey}
	for first := true; len(body) > 0; first = false {
		size := min(len(body), payloadBytes)
		descriptor := byte(0)
		if first {
			descriptor = 0x10
		}
		result.payloads = append(result.payloads, append([]byte{descriptor}, body[:size]...))
		body = body[size:]
	}
	return result
}

// viewers are the queues of the connected viewers.
type viewers struct {
	mutex  sync.Mutex
	queues map[chan frame]struct{}
}

func (v *viewers) add(queue chan frame) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.queues[queue] = struct{}{}
}

func (v *viewers) remove(queue chan frame) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if _, there := v.queues[queue]; there {
		delete(v.queues, queue)
		close(queue)
	}
}

// play passes each frame to each viewer at its time.
func (v *viewers) play() {
	key, others := makeFrame(keyFrameBytes, true), makeFrame(frameBytes, false)
	began := time.Now()
	for number := 0; ; number++ {
		// By the clock, not by a ticker, which skips late ticks.
		time.Sleep(time.Until(began.Add(time.Duration(number) * time.Second / framesPerSecond)))
		next := others
		if number%framesPerSecond == 0 {
			next = key
		}
		next.timestamp = uint32(number) * (90_000 / framesPerSecond)
		v.mutex.Lock()
		for queue := range v.queues {
			// A viewer that is seconds late gets no more frames, as in any server with a bounded queue.
			select {
			case queue <- next:
			default:
			}
		}
		v.mutex.Unlock()
	}
}

// send writes a viewer's frames until its queue is closed.
func send(track *webrtc.TrackLocalStaticRTP, queue chan frame) {
	var sequence uint16
	for next := range queue {
		if next.isKey && *workPerKeyFrame > 0 {
			burn(*workPerKeyFrame)
		}
		for i, payload := range next.payloads {
			if *workPerPacket > 0 {
				burn(*workPerPacket)
			}
			packet := &rtp.Packet{Payload: payload, Header: rtp.Header{
				Version: 2, SequenceNumber: sequence, Timestamp: next.timestamp, Marker: i == len(next.payloads)-1,
			}}
			sequence++
			if track.WriteRTP(packet) != nil {
				return
			}
		}
	}
}

// addSound adds an audio track of 50 packets a second without content.
func addSound(peer *webrtc.PeerConnection) error {
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus}, "audio", "pion")
	if err != nil {
		return err
	}
	if _, err := peer.AddTrack(track); err != nil {
		return err
	}
	go func() {
		packet := &rtp.Packet{Payload: make([]byte, 80), Header: rtp.Header{Version: 2}}
		began := time.Now()
		for range time.Tick(soundEvery) {
			// Missed ticks are caught up with: otherwise the audio would lag behind its clock.
			for due := time.Since(began) / soundEvery; time.Duration(packet.Timestamp/960) < due; packet.Timestamp += 960 {
				if track.WriteRTP(packet) != nil || peer.ConnectionState() == webrtc.PeerConnectionStateClosed {
					return
				}
				packet.SequenceNumber++
			}
		}
	}()
	return nil
}

// dropping is a socket that silently drops media above a rate: the sender sees no error.
type dropping struct {
	net.PacketConn
	left atomic.Int64
}

// refill adds the tokens of the elapsed time; the bucket holds a fifth of a second.
func (d *dropping) refill(perSecond int) {
	const parts = 50
	for range time.Tick(time.Second / parts) {
		d.left.Store(min(max(d.left.Load(), 0)+int64(perSecond/parts), int64(perSecond/5)))
	}
}

func (d *dropping) WriteTo(bytes []byte, to net.Addr) (int, error) {
	// RFC 7983: RTP and RTCP; RFC 5761: RTCP's types are 192 to 223.
	isMedia := len(bytes) > 1 && bytes[0] >= 128 && bytes[0] <= 191 && (bytes[1] < 192 || bytes[1] > 223)
	if isMedia && d.left.Add(-1) < 0 {
		return len(bytes), nil
	}
	return d.PacketConn.WriteTo(bytes, to)
}

func newAPI() *webrtc.API {
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	if *dropAbove > 0 {
		lossy := &dropping{PacketConn: socket}
		go lossy.refill(*dropAbove)
		socket = lossy
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetICEUDPMux(webrtc.NewICEUDPMux(nil, socket))
	return webrtc.NewAPI(webrtc.WithSettingEngine(settings))
}

type server struct {
	api     *webrtc.API
	viewers *viewers
	joins   sync.Mutex
	mutex   sync.Mutex
	peers   map[string]*webrtc.PeerConnection
}

// join answers an offer (draft-ietf-wish-whep): 201 with the answer and the URL of the session.
func (s *server) join(response http.ResponseWriter, request *http.Request) {
	offer, err := io.ReadAll(io.LimitReader(request.Body, 1<<20))
	if err != nil {
		return
	}
	if *serialJoin > 0 {
		s.joins.Lock()
		time.Sleep(*serialJoin)
		s.joins.Unlock()
	}
	id, answer, err := s.connect(string(offer))
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadRequest)
		return
	}
	response.Header().Set("Content-Type", "application/sdp")
	response.Header().Set("Location", "/whep/"+id)
	response.WriteHeader(http.StatusCreated)
	fmt.Fprint(response, answer)
}

func (s *server) connect(offer string) (id, answer string, err error) {
	peer, err := s.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", "", err
	}
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "video", "pion")
	if err != nil {
		return "", "", err
	}
	sender, err := peer.AddTrack(track)
	if err != nil {
		return "", "", err
	}
	// Feedback reaches the interceptors, which answer NACKs, only while it is read.
	go func() {
		for buffer := make([]byte, 1500); ; {
			if _, _, err := sender.Read(buffer); err != nil {
				return
			}
		}
	}()
	queue := make(chan frame, 5*framesPerSecond)
	go send(track, queue)
	if !*silent {
		if err := addSound(peer); err != nil {
			return "", "", err
		}
	}
	peer.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			s.viewers.add(queue)
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			s.viewers.remove(queue)
		}
	})
	if err := peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer}); err != nil {
		return "", "", err
	}
	description, err := peer.CreateAnswer(nil)
	if err != nil {
		return "", "", err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(description); err != nil {
		return "", "", err
	}
	<-gathered
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", "", err
	}
	id = fmt.Sprintf("%016x", binary.BigEndian.Uint64(random[:]))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.peers[id] = peer
	return id, peer.LocalDescription().SDP, nil
}

func (s *server) leave(_ http.ResponseWriter, request *http.Request) {
	s.mutex.Lock()
	peer := s.peers[request.PathValue("id")]
	delete(s.peers, request.PathValue("id"))
	s.mutex.Unlock()
	if peer != nil {
		_ = peer.Close()
	}
}

func main() {
	flag.Parse()
	s := &server{
		api:     newAPI(),
		viewers: &viewers{queues: make(map[chan frame]struct{})},
		peers:   make(map[string]*webrtc.PeerConnection),
	}
	go s.viewers.play()
	http.HandleFunc("POST /whep", s.join)
	http.HandleFunc("DELETE /whep/{id}", s.leave)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("whep+http://%s/whep\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
