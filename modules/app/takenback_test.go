package app

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	mcpsession "github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// TestEndTakenBack checks that a client ends the wait for its own call of that id in that session, and for nothing
// else, after the time that a late answer has.
func TestEndTakenBack(t *testing.T) {
	t.Parallel()
	type said struct{ organization, user, agent, server, session, body string }
	waiting := said{"o", "alice", "claude", "s", "one", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"wait"}}`}
	cancels := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	}
	for name, tc := range map[string]struct {
		said
		ends bool
	}{
		"the same":             {said{"o", "alice", "claude", "s", "one", cancels("7")}, true},
		"written otherwise":    {said{"o", "alice", "claude", "s", "one", cancels("7.0")}, true},
		"in a batch":           {said{"o", "alice", "claude", "s", "one", "[" + cancels("1") + "," + cancels("7") + "]"}, true},
		"another id":           {said{"o", "alice", "claude", "s", "one", cancels("8")}, false},
		"a text":               {said{"o", "alice", "claude", "s", "one", cancels(`"7"`)}, false},
		"another session":      {said{"o", "alice", "claude", "s", "two", cancels("7")}, false},
		"another agent":        {said{"o", "alice", "other", "s", "one", cancels("7")}, false},
		"another user":         {said{"o", "bob", "claude", "s", "one", cancels("7")}, false},
		"another server":       {said{"o", "alice", "claude", "t", "one", cancels("7")}, false},
		"another organization": {said{"p", "alice", "claude", "s", "one", cancels("7")}, false},
		"without a session":    {said{"o", "alice", "claude", "s", "", cancels("7")}, false},
		"another notification": {said{"o", "alice", "claude", "s", "one", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"requestId":7}}`}, false},
		"without params":       {said{"o", "alice", "claude", "s", "one", `{"jsonrpc":"2.0","method":"notifications/cancelled"}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				core := &Core{Streams: new(streams.Registry)}
				call := func(s said) (*Call, context.Context) {
					c := &Call{Core: core, Caller: &authn.Caller{OrganizationID: s.organization, UserID: s.user, Agent: s.agent}, Server: &storage.Server{ID: s.server}}
					c.Inbound = &inbound.Request{Session: mcpsession.Session{Upstream: s.session}, HTTP: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)}
					if err := c.Inbound.Message.Decode([]byte(s.body), strictjson.Limits{MaxBytes: 1 << 10}); err != nil {
						t.Fatal(err)
					}
					return c, WithCall(c.Inbound.HTTP, c).Context()
				}
				c, ctx := call(waiting)
				ctx, done := core.Streams.Open(ctx, c.owner(), streams.Call, time.Time{}, streams.Limits{}, nil)
				defer done()
				canceller, _ := call(tc.said)
				canceller.Streams().EndTakenBack()
				time.Sleep(lateAnswer - 1)
				if synctest.Wait(); ctx.Err() != nil {
					t.Error("a late answer has no time")
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if reason, ended := streams.EndedFor(ctx); ended != tc.ends || ended && reason != streams.Cancelled {
					t.Errorf("ended: %v, %q", ended, reason)
				}
			})
		})
	}
}
