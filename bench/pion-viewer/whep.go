package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pion/webrtc/v4"
)

// posts has a connection for each viewer, as real viewers do: none is shared or kept.
var posts = &http.Client{
	Timeout:   handshakeMax,
	Transport: &http.Transport{DisableKeepAlives: true},
}

// watchWHEP offers to receive one video and one audio track, and applies the answer of the response.
func watchWHEP(api *webrtc.API, target *url.URL, _ int) error {
	pc, err := newConnection(api)
	if err != nil {
		return err
	}
	receives := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		if _, err := pc.AddTransceiverFromKind(kind, receives); err != nil {
			return err
		}
	}
	local, err := pc.CreateOffer(nil)
	if err != nil {
		return err
	}
	offer, err := gathered(pc, local)
	if err != nil {
		return err
	}
	sdp, err := post(target.String(), offer)
	if err != nil {
		return err
	}
	return pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp})
}

// post sends the offer and returns the answer.
func post(address, offer string) (string, error) {
	response, err := posts.Post(address, "application/sdp", strings.NewReader(offer))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("whep: %s: %s", response.Status, body)
	}
	return string(body), nil
}
