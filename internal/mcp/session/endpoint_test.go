package session

import (
	"errors"
	"strings"
	"testing"
)

const theirs = "https://up.example/messages?sessionId=1"

func TestEndpointRoundTrip(t *testing.T) {
	c := New(newGCM(t), fixed)
	for _, endpoint := range []string{theirs, strings.Repeat("~", MaxEndpoint)} {
		id, err := c.SealEndpoint(endpoint, alice)
		if err != nil {
			t.Fatal(err)
		}
		if len(id) > maxSealedEndpoint || strings.Contains(id, "up.example") {
			t.Errorf("id of %d characters: %s", len(id), id)
		}
		if got, err := c.OpenEndpoint(id, alice); err != nil || got != endpoint {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, endpoint := range []string{"", "a b", "a\n", "ü", strings.Repeat("x", MaxEndpoint+1)} {
		if _, err := c.SealEndpoint(endpoint, alice); !errors.Is(err, ErrUpstreamID) {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestForeignEndpoint(t *testing.T) {
	sealer := newGCM(t)
	c := New(sealer, fixed)
	id, err := c.SealEndpoint(theirs, alice)
	if err != nil {
		t.Fatal(err)
	}
	session, err := c.Seal(Session{Upstream: theirs}, alice)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(*Binding)) Binding { b := alice; change(&b); return b }
	seal := func(plain string) string { return sealer.Seal([]byte(plain), alice.bound("mcp endpoint")) }
	for _, tc := range []struct {
		name, id string
		b        Binding
	}{
		{"another user", id, with(func(b *Binding) { b.User = "bob" })},
		{"another agent", id, with(func(b *Binding) { b.Agent = "other" })},
		{"another server", id, with(func(b *Binding) { b.Server = "demo2" })},
		{"another organization", id, with(func(b *Binding) { b.Organization = "rival" })},
		{"a session id", session, alice},
		{"empty", "", alice},
		{"too long", strings.Repeat("A", maxSealedEndpoint+1), alice},
		{"not sealed", theirs, alice},
		{"appended", id + "A", alice},
		{"cut", id[:len(id)-1], alice},
		{"layout of the future", seal("\x02" + theirs), alice},
		{"no endpoint", seal("\x01"), alice},
		{"nothing", seal(""), alice},
		{"line end", seal("\x01/a\r\nX: y"), alice},
		{"an endpoint longer than is sealed", seal("\x01" + strings.Repeat("x", MaxEndpoint+1)), alice},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := c.OpenEndpoint(tc.id, tc.b); !errors.Is(err, ErrUnknownSession) || got != "" {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := c.Open(id, alice); !errors.Is(err, ErrUnknownSession) {
		t.Errorf("an endpoint was opened as a session: %v", err)
	}
}
