package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

const (
	maxStreams   = 200
	streamBuffer = 64 // events that a slow reader may be behind
	heartbeat    = 15 * time.Second
	writeTimeout = 30 * time.Second // the longest time for one event to a reader that does not read
	objectIssue  = "issue"
)

// change is the data of a data_update event.
type change struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Changes map[string]any `json:"changes"`
}

func created(i Issue) change {
	return change{Type: objectIssue, ID: strconv.Itoa(i.ID), Changes: map[string]any{"title": i.Title, "team": i.Team, "priority": i.Priority}}
}

func deleted(i Issue) change {
	return change{Type: objectIssue, ID: strconv.Itoa(i.ID), Changes: map[string]any{"deleted": true}}
}

// hub carries changes to the streams of the account.
type hub struct {
	mu      sync.Mutex
	closed  bool
	streams map[*stream]struct{}
}

type stream struct {
	account string
	grant   string
	changes chan change
	ended   chan string // carries the reason, once
}

func newHub() *hub { return &hub{streams: make(map[*stream]struct{})} }

// open adds a stream, or returns nil when there are too many.
func (h *hub) open(account, grant string) *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.streams) >= maxStreams {
		return nil
	}
	s := &stream{account: account, grant: grant, changes: make(chan change, streamBuffer), ended: make(chan string, 1)}
	h.streams[s] = struct{}{}
	return s
}

func (h *hub) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// end removes a stream and sends it the reason, with mu held.
func (h *hub) end(s *stream, reason string) {
	delete(h.streams, s)
	s.ended <- reason
}

func (h *hub) publish(account string, c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if s.account != account {
			continue
		}
		select {
		case s.changes <- c:
		default:
			h.end(s, "limit") // a reader that does not read
		}
	}
}

func (h *hub) revoke(grant string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		if s.grant == grant {
			h.end(s, "revoked")
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.streams {
		h.end(s, "shutdown")
	}
}

// serveEvents serves GET /events?object_type&limit: data_update events for the account of the token. The first comes at
// once with the account's latest issue, so that a reader sees the stream work. After limit of them the stream ends; it
// outlives its access token, but not its revocation. Its last event is then a status_change.
func (d *Demo) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		authserver.WriteJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "MethodNotAllowed", "message": "the stream is read with GET"})
		return
	}
	objectType, limit := r.URL.Query().Get("object_type"), 0
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			authserver.WriteJSON(w, http.StatusBadRequest, map[string]string{"error": "BadRequest", "message": "limit must be a positive integer"})
			return
		}
		limit = n
	}
	g := grantOf(r.Context())
	s := d.events.open(g.Subject, g.ID)
	if s == nil {
		unavailable(w, "too many streams are open")
		return
	}
	defer d.events.leave(s)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	defer func() { _ = out.SetWriteDeadline(time.Time{}) }() // the connection may be used again
	left := limit
	// send writes an event and reports whether more may follow.
	send := func(c change) bool {
		if objectType != "" && c.Type != objectType {
			return true
		}
		if writeEvent(w, out, "data_update", c) != nil {
			return false
		}
		left--
		return left != 0
	}
	w.WriteHeader(http.StatusOK)
	if out.Flush() != nil {
		return
	}
	if list, err := d.issues.of(g.Subject, ""); err == nil && len(list) > 0 && !send(created(list[len(list)-1])) {
		return
	}
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case c := <-s.changes:
			if !send(c) {
				return
			}
		case reason := <-s.ended:
			_ = writeEvent(w, out, "status_change", map[string]string{"status": "disconnected", "reason": reason})
			return
		case <-ticker.C:
			if write(w, out, ": alive\n\n") != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, out *http.ResponseController, name string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return write(w, out, fmt.Sprintf("event: %s\ndata: %s\n\n", name, b))
}

func write(w http.ResponseWriter, out *http.ResponseController, s string) error {
	_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
	if _, err := io.WriteString(w, s); err != nil {
		return err
	}
	return out.Flush()
}
