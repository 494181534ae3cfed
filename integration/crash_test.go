package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
)

// crashCycles returns the number of times that TestCrash kills the gateway: CRASH_CYCLES, 20 by default.
func crashCycles(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CRASH_CYCLES")
	if text == "" {
		return 20
	}
	cycles, err := strconv.Atoi(text)
	if err != nil || cycles < 1 {
		t.Fatalf("CRASH_CYCLES=%q is not a number of cycles", text)
	}
	return cycles
}

// TestCrash checks that every write that the gateway has acknowledged is there after kill -9, once and whole; every
// other one is there whole or not at all (Z-F01).
func TestCrash(t *testing.T) {
	t.Parallel()
	cycles := crashCycles(t)
	g := startGateway(t, settings{})
	party := newThirdParty(t)
	template := g.createServer(party.url()+"/open", map[string]any{"provider": "api_key", "requires_auth": true})
	var found struct {
		Directory string `json:"mcp_server_directory_id"`
	}
	g.api(g.token(admin), http.MethodGet, "/api/servers/"+template.ID, nil).decode(t, &found)
	var writers []*writer
	for i := range 4 {
		user := admin.with(claims{"sub": fmt.Sprintf("0190cccc-0000-7000-8000-%012d", i), "email": fmt.Sprintf("writer%d@acme.test", i)})
		writers = append(writers, &writer{name: fmt.Sprint("Writer ", i), token: g.token(user), directory: found.Directory, client: newClient(t)})
	}
	acknowledged := 0
	for range cycles {
		acknowledged += g.writeAndKill(writers)
		g.restart()
		g.compareJournals(writers, party)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d acknowledged writes in %d cycles", acknowledged, cycles)
}

// writeAndKill lets the writers write until a number of writes is acknowledged, kills the gateway in the middle of the
// next ones, and returns the number of acknowledged ones.
func (g *gateway) writeAndKill(writers []*writer) int {
	g.t.Helper()
	acknowledged := make(chan struct{})
	var all sync.WaitGroup
	for _, w := range writers {
		all.Go(func() { w.write(g.url, acknowledged) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	enough := 5 + rand.IntN(40)
	for range enough {
		select {
		case <-acknowledged:
		case <-done:
			g.t.Fatalf("no writer can write: %v", writers[0].err)
		}
	}
	count := enough
	go g.kill()
	for {
		select {
		case <-acknowledged:
			count++
			continue
		case <-done:
		}
		g.kill()
		return count
	}
}

// writer is a user who writes, one write after the other, and keeps a journal of it.
type writer struct {
	name, token, directory string
	client                 *http.Client
	serial                 int
	records                []*record
	err                    error // of the last write
}

// record holds the facts that a writer knows about a server that it has made.
type record struct {
	id      string // "" until creation was acknowledged
	name    string
	version int // the last one that was acknowledged
	key     string
	// trying holds version and key of the one write that was not acknowledged.
	trying    int
	tryingKey string
}

// write writes until the gateway does not answer any more.
func (w *writer) write(url string, acknowledged chan<- struct{}) {
	for {
		if w.err = w.step(url); w.err != nil {
			return
		}
		acknowledged <- struct{}{}
	}
}

// step makes one write: a new server, or a change of one's own, or a connection to it.
func (w *writer) step(url string) error {
	w.serial++
	kind := rand.IntN(3)
	if len(w.records) == 0 || w.records[len(w.records)-1].id == "" {
		kind = 0
	}
	if kind == 0 {
		r := &record{name: fmt.Sprintf("%s server %d", w.name, w.serial)}
		w.records = append(w.records, r)
		var made struct {
			ID string `json:"id"`
		}
		err := w.send(http.MethodPost, url+"/api/servers?test=false", map[string]any{
			"name": r.name, "mcp_server_directory_id": w.directory, "meta": map[string]any{"name": r.name, "version": 0},
		}, &made)
		r.id = made.ID
		return err
	}
	r := w.records[rand.IntN(len(w.records))]
	for r.id == "" {
		r = w.records[rand.IntN(len(w.records))]
	}
	if kind == 1 {
		r.trying = w.serial
		// Name and meta change together or not at all.
		name := fmt.Sprintf("%s server %d", w.name, w.serial)
		if err := w.send(http.MethodPut, url+"/api/servers/"+r.id, map[string]any{"name": name, "meta": map[string]any{"name": name, "version": w.serial}}, nil); err != nil {
			return err
		}
		r.version, r.name, r.trying = w.serial, name, 0
		return nil
	}
	r.tryingKey = fmt.Sprint("key-", w.serial)
	if err := w.send(http.MethodPost, url+"/api/servers/"+r.id+"/connect", map[string]any{"api_key": r.tryingKey}, nil); err != nil {
		return err
	}
	r.key, r.tryingKey = r.tryingKey, ""
	return nil
}

// send makes a request; nil means that it was acknowledged, body and all.
func (w *writer) send(method, address string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, address, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %d: %s", method, address, response.StatusCode, content)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}

// stored is a server in the gateway's list.
type stored struct {
	ID               string `json:"id"`
	Name             string `json:"name"`
	ConnectionStatus string `json:"connection_status"`
	Meta             struct {
		Name    string `json:"name"`
		Version int    `json:"version"`
	} `json:"meta"`
}

// compareJournals compares the stored data with the acknowledged writes.
func (g *gateway) compareJournals(writers []*writer, party *thirdParty) {
	g.t.Helper()
	for _, w := range writers {
		kept := g.allServers(w)
		for i, r := range w.records {
			s, ok := kept[r.id]
			if r.id == "" { // not acknowledged: there is at most one of it, and it is the last
				for _, s := range kept {
					if s.Name == r.name {
						r.id, ok = s.ID, true
						break
					}
				}
				if !ok {
					w.records = append(w.records[:i], w.records[i+1:]...)
					break
				}
				s = kept[r.id]
			}
			delete(kept, r.id)
			if !ok {
				g.t.Errorf("%q was acknowledged and is lost", r.name)
				continue
			}
			g.compareServer(w, r, s)
			if r.tryingKey != "" || i == len(w.records)-1 {
				g.compareKey(w, r, party)
			}
		}
		for _, s := range kept {
			g.t.Errorf("%q is there, and nobody knows of it", s.Name)
		}
	}
}

func (g *gateway) compareServer(w *writer, r *record, s stored) {
	g.t.Helper()
	switch s.Meta.Version {
	case r.version:
	case r.trying:
		r.version, r.name = r.trying, fmt.Sprintf("%s server %d", w.name, r.trying)
	default:
		g.t.Errorf("%q has version %d; %d was acknowledged and %d tried", s.Name, s.Meta.Version, r.version, r.trying)
	}
	r.trying = 0
	if s.Name != r.name || s.Meta.Name != r.name {
		g.t.Errorf("half a change: name %q, meta %+v; wanted %q", s.Name, s.Meta, r.name)
	}
	switch {
	case r.key != "" && s.ConnectionStatus != "connected":
		g.t.Errorf("the acknowledged connection to %q is %s", r.name, s.ConnectionStatus)
	case r.key == "" && r.tryingKey == "" && s.ConnectionStatus == "connected":
		g.t.Errorf("nobody has connected to %q", r.name)
	case r.key == "" && s.ConnectionStatus == "connected":
		r.key = r.tryingKey
	}
}

// compareKey calls a server and checks the key that arrives.
func (g *gateway) compareKey(w *writer, r *record, party *thirdParty) {
	g.t.Helper()
	if r.key == "" {
		r.tryingKey = "" // the connection is not there
		return
	}
	var s struct {
		Slug string `json:"slug"`
	}
	g.api(w.token, http.MethodGet, "/api/servers/"+r.id, nil).decode(g.t, &s)
	g.allowAll(g.token(admin), r.id)
	g.callTool(w.token, server{path: "/mcp/" + s.Slug}, "", "echo").want(g.t, http.StatusOK)
	header, _ := party.lastSeen()
	switch key := header.Get("X-API-Key"); key {
	case r.key, r.tryingKey:
		r.key, r.tryingKey = key, ""
	default:
		g.t.Errorf("%q is called with %s; %s was acknowledged and %s tried", r.name, key, r.key, r.tryingKey)
	}
}

// allServers lists the servers of a writer, every one once.
func (g *gateway) allServers(w *writer) map[string]stored {
	g.t.Helper()
	all, names := map[string]stored{}, map[string]bool{}
	for page := 1; ; page++ {
		var list struct {
			Data       []stored `json:"data"`
			Pagination struct {
				Next *int `json:"next_page"`
			} `json:"pagination"`
		}
		a := g.api(w.token, http.MethodGet, fmt.Sprintf("/api/servers?limit=100&page=%d&search=%s", page, "Writer+"+w.name[len(w.name)-1:]+"+server"), nil)
		a.decode(g.t, &list)
		for _, s := range list.Data {
			if _, twice := all[s.ID]; twice || names[s.Name] {
				g.t.Errorf("%q is there twice", s.Name)
			}
			all[s.ID], names[s.Name] = s, true
		}
		if list.Pagination.Next == nil {
			return all
		}
	}
}
