package routes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// These are the times of event streams about what the store has. Other nodes write it too, so it is looked at.
const (
	lookEvery = time.Second
	heartbeat = 15 * time.Second
)

// Seen holds what a look has found.
type Seen struct {
	View any
	Last bool // nothing comes after it
}

// Follow writes what was found as an event, and what later looks find that differs. It ends with the last state, with a refusal
// of a look, and with the right of the caller.
func (q *Request) Follow(event string, found Seen, look func(context.Context) (Seen, error)) Streamed {
	return func(w http.ResponseWriter) error {
		ctx, done := q.Call.Streams().Open(q.Context(), streams.Listen)
		defer done()
		if reason, ended := streams.EndedFor(ctx); ended {
			q.Call.Streams().WriteEnded(w, q.HTTP, reason)
			return nil
		}
		h := w.Header()
		h.Set("Content-Type", Events)
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		out := http.NewResponseController(w)
		again, beat := time.NewTicker(lookEvery), time.NewTicker(heartbeat)
		defer again.Stop()
		defer beat.Stop()
		var said []byte
		for {
			text, err := json.Marshal(found.View)
			if err != nil {
				return nil //nolint:nilerr // not reached: a view is always encodable
			}
			var written error
			if !bytes.Equal(text, said) {
				said = text
				_, written = w.Write(append(append([]byte("event: "+event+"\ndata: "), text...), "\n\n"...))
			}
			if flushed := out.Flush(); written != nil || flushed != nil || found.Last {
				return nil
			}
			select {
			case <-ctx.Done():
				return nil
			case <-beat.C:
				if _, err := w.Write([]byte(": still there\n\n")); err != nil {
					return nil //nolint:nilerr // the client has gone
				}
			case <-again.C:
				var refused *Refusal
				if now, err := look(ctx); err == nil {
					found = now
				} else if errors.As(err, &refused) {
					return nil
				}
			}
		}
	}
}
