package faults

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// upstream is an MCP server that answers every call with the credential that came with it, and counts the calls that
// run.
type upstream struct {
	server *httptest.Server

	mu   sync.Mutex
	runs map[string]int // by the tool's name, with the arguments when there are any
	all  int64
}

func newUpstream(t testing.TB) *upstream {
	t.Helper()
	u := &upstream{runs: make(map[string]int)}
	u.server = httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(func() {
		u.server.CloseClientConnections()
		u.server.Close()
	})
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var called struct {
		Params struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &called) // a body that is no call counts as one without a name
	u.mu.Lock()
	u.runs[called.Params.Name+strings.TrimSuffix(string(called.Params.Arguments), "{}")]++
	u.all++
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(members{"jsonrpc": "2.0", "id": 7, "result": members{
		"content": []any{members{"type": "text", "text": "credential " + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}},
	}})
}

// ran returns the number of runs of a call.
func (u *upstream) ran(what string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.runs[what]
}

// total returns the number of calls that ran.
func (u *upstream) total() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}
