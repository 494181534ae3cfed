package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// h2 is one HTTP/2 connection. net/http opens it with the first request, and again when it has ended.
type h2 struct {
	client  *http.Client
	method  string
	target  string
	body    string
	headers []http.Header // one per token
}

func newH2(method, target, body string, bearers []string, extra headers) *h2 {
	h := &h2{method: method, target: target, body: body, client: &http.Client{Timeout: patience, Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13},
	}}}
	for _, bearer := range bearers {
		header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if bearer != "" {
			header.Set("Authorization", "Bearer "+bearer)
		}
		for _, each := range extra {
			name, value, _ := strings.Cut(each, ":")
			header.Add(name, strings.TrimSpace(value))
		}
		h.headers = append(h.headers, header)
	}
	return h
}

// once sends a request with the header of a token, and reads the whole answer.
func (h *h2) once(token int) (status int, err error) {
	request, err := http.NewRequest(h.method, h.target, strings.NewReader(h.body))
	if err != nil {
		return 0, err
	}
	request.Header = h.headers[token]
	response, err := h.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		return 0, fmt.Errorf("answered with %s, not HTTP/2", response.Proto)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
