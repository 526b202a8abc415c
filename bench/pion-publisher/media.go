package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/pion/webrtc/v4/pkg/media"
	"github.com/pion/webrtc/v4/pkg/media/ivfreader"
)

// A loop of coded frames that all publishers send, read once.
type loop struct {
	frames [][]byte
	each   time.Duration
}

func (l *loop) sample(at int) media.Sample {
	return media.Sample{Data: l.frames[at%len(l.frames)], Duration: l.each}
}

// video reads the frames of an IVF file with frame rate fps.
func video(path string, fps int) (*loop, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reader, _, err := ivfreader.NewWith(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	read := &loop{each: time.Second / time.Duration(fps)}
	for {
		frame, _, err := reader.ParseNextFrame()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return nil, err
		}
		read.frames = append(read.frames, frame)
	}
}

// audio reads the packets of an Ogg file of Opus, 20 ms each: pages of lacing values (RFC 3533), without its two headers.
func audio(path string) (*loop, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := &loop{each: 20 * time.Millisecond}
	var packet []byte
	for len(file) >= 27 && string(file[:4]) == "OggS" {
		lacing := int(file[26])
		if len(file) < 27+lacing {
			return nil, io.ErrUnexpectedEOF
		}
		segments, body := file[27:27+lacing], file[27+lacing:]
		for _, length := range segments {
			if len(body) < int(length) {
				return nil, io.ErrUnexpectedEOF
			}
			packet = append(packet, body[:length]...)
			body = body[length:]
			if length < 255 {
				read.frames = append(read.frames, packet)
				packet = nil
			}
		}
		file = body
	}
	if len(read.frames) < 3 {
		return nil, errors.New("no packets of Opus in " + path)
	}
	read.frames = read.frames[2:]
	return read, nil
}
