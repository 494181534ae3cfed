// Package models is the demo provider of models, which the gateway calls in development mode, where there is no
// network. It speaks as OpenAI (chat completions, responses, embeddings) and as Anthropic (messages) do, whole and
// streamed, with tools and usage, and needs no key.
//
// There are three models of different strength, which shows in the length of their answers, and one for embeddings.
// None of them thinks: their answers follow from the request alone. Asked to choose a slot of a smart model, each of
// them does.
package models

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// These are the models' names.
const (
	Small  = "demo-small"
	Medium = "demo-medium"
	Large  = "demo-large"
	Embed  = "demo-embed"
)

// maxBody bounds a request, in bytes.
const maxBody = 32 << 20

// Options holds the settings of the models' answers.
type Options struct {
	Pause time.Duration    // between two pieces of a stream, so that one sees it stream
	Now   func() time.Time // nil: time.Now
}

// provider serves the models.
type provider struct {
	Options
	serial atomic.Uint64 // of answers
}

// Handler returns the provider's handler: OpenAI's clients take `<its address>/v1` as their base URL, Anthropic's `<its
// address>`.
func Handler(o Options) http.Handler {
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &provider{Options: o}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.chat)
	mux.HandleFunc("POST /v1/responses", p.responses)
	mux.HandleFunc("POST /v1/embeddings", p.embeddings)
	mux.HandleFunc("POST /v1/messages", p.messages)
	return mux
}

// id makes the id of an answer.
func (p *provider) id(prefix string) string {
	return prefix + "demo" + strconv.FormatUint(p.serial.Add(1), 10)
}

// object is a JSON object.
type object map[string]any

// read reads a request, or answers that it cannot be read.
func read(w http.ResponseWriter, r *http.Request, into any, complain func(w http.ResponseWriter, status int, kind, message string)) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into); err != nil {
		complain(w, http.StatusBadRequest, "invalid_request_error", fmt.Sprintf("The request cannot be read: %v", err))
		return false
	}
	return true
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// stream writes events, each at once.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	pause time.Duration
	named bool // events carry their type as their name too, and there is no final [DONE]
}

func (p *provider) stream(w http.ResponseWriter, r *http.Request, named bool) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, r: r, pause: p.Pause, named: named}
}

// send sends an event.
func (s *stream) send(event object) {
	data, err := json.Marshal(event)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if s.named {
		_, _ = fmt.Fprintf(s.w, "event: %s\n", event["type"])
	}
	s.raw(string(data))
}

func (s *stream) raw(data string) {
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", data)
	_ = http.NewResponseController(s.w).Flush()
}

// wait waits for the time between two pieces; it returns false when the client left.
func (s *stream) wait() bool {
	if s.pause == 0 {
		return s.r.Context().Err() == nil
	}
	timer := time.NewTimer(s.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.r.Context().Done():
		return false
	}
}
