package faults

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestRevocationKilled checks the case that kill -9 between the end of connections and their provider's answer to the
// revocations (Z-A05). Of each user, the connection is there afterwards, or the provider is told to forget its tokens:
// never neither.
func TestRevocationKilled(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(t *testing.T) string{
		"embedded":   func(*testing.T) string { return "" },
		"PostgreSQL": func(t *testing.T) string { return pgtest.NewServer(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSite(t, plan{nodes: 1, database: database(t)})
			p := newGrantor(t)
			granted := s.nodes[0].newServer("Granted", members{"provider": "oauth2", "requires_auth": true, "url": p.server.URL + "/mcp"}, everything)
			for cycle := range 3 {
				s.endAndKill(p, granted, cycle)
			}
		})
	}
}

// ender is a user who disconnects.
type ender struct{ token, code string }

// endAndKill connects users, lets all disconnect at once, and kills the node when the provider is asked for the first time.
func (s *site) endAndKill(p *grantor, granted server, cycle int) {
	s.t.Helper()
	n, client := s.nodes[0], newClient(s.t)
	var all []ender
	var codes []string
	for i := range 12 {
		e := ender{token: s.token(members{"sub": fmt.Sprint("ender ", cycle, i), "email": fmt.Sprintf("ender-%d-%d@acme.test", cycle, i)})}
		e.code = p.connect(n, client, e.token, granted)
		all, codes = append(all, e), append(codes, e.code)
	}
	path := "/api/servers/" + granted.id + "/connection"
	held, release := p.holdRevocations(codes)
	var ends sync.WaitGroup
	for _, e := range all {
		ends.Go(func() { n.send(client, http.MethodDelete, path, e.token, nil) }) // an answer or none: the stored state decides
	}
	select {
	case <-held:
	case <-time.After(callTimeout):
		s.t.Fatal("the provider was not asked")
	}
	n.Kill()
	ends.Wait()
	release()
	n.restart()
	ended := 0
	for i, e := range all {
		var is struct{ Status string }
		n.read(client, e.token, path, &is)
		if is.Status == "connected" {
			if told := p.toldOf(e.code); told != 0 {
				s.t.Errorf("user %d is connected, and %d of their tokens are revoked", i, told)
			}
			continue
		}
		ended++
		eventually(s.t, fmt.Sprintf("the tokens of user %d to be revoked", i), func() bool { return p.toldOf(e.code) == 2 })
	}
	if ended == 0 {
		s.t.Error("the provider was asked, and nobody's connection had ended")
	}
	s.t.Logf("%d of %d had disconnected when the node was killed", ended, len(all))
}
