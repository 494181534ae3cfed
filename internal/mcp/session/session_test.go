package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

var _ Sealer = (*seal.TokenSealer)(nil)

// gcm is the least Sealer: AES-GCM with a random nonce, base64url.
type gcm struct{ cipher.AEAD }

func newGCM(t testing.TB) gcm {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	return gcm{aead}
}

func (g gcm) Seal(plaintext, ad []byte) string {
	return base64.RawURLEncoding.EncodeToString(g.AEAD.Seal(nil, nil, plaintext, ad))
}

func (g gcm) Open(s string, ad []byte) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil {
		return nil, err
	}
	return g.AEAD.Open(nil, nil, raw, ad)
}

var (
	noon  = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)
	alice = Binding{Organization: "acme", User: "alice", Agent: "dev-agent", Server: "demo"}
)

func fixed() time.Time { return noon }

func TestRoundTrip(t *testing.T) {
	c := New(newGCM(t), fixed)
	for _, tc := range []struct {
		name string
		s    Session
		b    Binding
	}{
		{"usual", Session{Upstream: "0198c5a2", ProtocolVersion: "2025-11-25", ElicitForm: true}, alice},
		{"everything", Session{Upstream: strings.Repeat("~", MaxUpstreamID), ProtocolVersion: strings.Repeat("v", 32), ElicitForm: true, ElicitURL: true}, alice},
		{"of the gateway's own", Session{Upstream: Begin().Upstream, Own: true, ElicitForm: true}, alice},
		{"no agent, no version", Session{Upstream: "!"}, Binding{Organization: "acme", User: "alice", Server: "demo"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id, err := c.Seal(tc.s, tc.b)
			if err != nil {
				t.Fatal(err)
			}
			if len(id) >= 1024 || !visible(id) {
				t.Errorf("id of %d characters: %s", len(id), id)
			}
			want := tc.s
			want.IssuedAt = noon
			got, err := c.Open(id, tc.b)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBegin checks that sessions of the gateway's own are told apart, and upstreams do not see them.
func TestBegin(t *testing.T) {
	a, b := Begin(), Begin()
	if a.Upstream == b.Upstream || !a.Own || a.Forwarded() != "" {
		t.Errorf("%+v, %+v", a, b)
	}
	if got := (Session{Upstream: "up-1"}).Forwarded(); got != "up-1" {
		t.Errorf("the upstream's own id is forwarded as %q", got)
	}
}

func TestUpstreamID(t *testing.T) {
	c := New(newGCM(t), fixed)
	for _, id := range []string{"", " ", "a b", "a\n", "a\x00", "a\x7f", "ü", strings.Repeat("x", MaxUpstreamID+1)} {
		if _, err := c.Seal(Session{Upstream: id}, alice); !errors.Is(err, ErrUpstreamID) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := c.Seal(Session{Upstream: "x", ProtocolVersion: strings.Repeat("v", 33)}, alice); err == nil {
		t.Error("a protocol version of 33 bytes was sealed")
	}
}

func TestForeignAndTampered(t *testing.T) {
	sealer := newGCM(t)
	c := New(sealer, fixed)
	id, err := c.Seal(Session{Upstream: "up-1", ProtocolVersion: "2025-11-25"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := New(newGCM(t), fixed).Seal(Session{Upstream: "up-1"}, alice)
	with := func(change func(*Binding)) Binding { b := alice; change(&b); return b }
	seal := func(plain string) string { return sealer.Seal([]byte(plain), alice.associated()) }
	for _, tc := range []struct {
		name string
		id   string
		b    Binding
	}{
		{"another user", id, with(func(b *Binding) { b.User = "bob" })},
		{"another agent", id, with(func(b *Binding) { b.Agent = "other" })},
		{"another issuer's agent of that id", id, with(func(b *Binding) { b.Issuer = "https://other.example" })},
		{"no agent", id, with(func(b *Binding) { b.Agent = "" })},
		{"another server", id, with(func(b *Binding) { b.Server = "demo2" })},
		{"another organization", id, with(func(b *Binding) { b.Organization = "rival" })},
		{"fields moved against each other", id, Binding{Organization: "acmea", User: "lice", Agent: "dev-agent", Server: "demo"}},
		{"upstream's own id", "up-1", alice},
		{"another key", other, alice},
		{"empty", "", alice},
		{"too long", strings.Repeat("A", maxSealed+1), alice},
		{"blank at the end", id + " ", alice},
		{"line end", id + "\n", alice},
		{"not ASCII", id + "é", alice},
		{"appended", id + "A", alice},
		{"cut", id[:len(id)-1], alice},
		{"layout of the future", seal("\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00up-1"), alice},
		{"unknown flag", seal("\x01\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00up-1"), alice},
		{"version longer than the rest", seal("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09up-1"), alice},
		{"no upstream id", seal("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), alice},
		{"upstream id with a line end", seal("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00a\r\nX: y"), alice},
		{"shorter than its head", seal("\x01"), alice},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if s, err := c.Open(tc.id, tc.b); !errors.Is(err, ErrUnknownSession) || err.Error() != ErrUnknownSession.Error() || s != (Session{}) {
				t.Errorf("got %+v, %v", s, err)
			}
		})
	}
	for i := range id {
		flipped := []byte(id)
		if flipped[i]++; flipped[i] == id[i] {
			continue
		}
		if _, err := c.Open(string(flipped), alice); !errors.Is(err, ErrUnknownSession) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
}

// null seals nothing, so that a fuzzer reaches the layout behind the seal.
type null struct{}

func (null) Seal(p, _ []byte) string                 { return base64.RawURLEncoding.EncodeToString(p) }
func (null) Open(s string, _ []byte) ([]byte, error) { return base64.RawURLEncoding.DecodeString(s) }

func FuzzOpen(f *testing.F) {
	open, sealed := New(null{}, fixed), New(newGCM(f), fixed)
	for _, c := range []*Codec{open, sealed} {
		id, _ := c.Seal(Session{Upstream: "up-1", ProtocolVersion: "2025-11-25", ElicitURL: true}, alice)
		f.Add(id)
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		if _, err := New(newGCM(t), fixed).Open(id, alice); !errors.Is(err, ErrUnknownSession) {
			t.Fatalf("%q opened under a new key: %v", id, err)
		}
		s, err := open.Open(id, alice)
		if err != nil {
			if !errors.Is(err, ErrUnknownSession) {
				t.Fatal(err)
			}
			return
		}
		again, err := New(null{}, func() time.Time { return s.IssuedAt }).Seal(s, alice)
		if err != nil {
			t.Fatalf("opened what cannot be sealed: %+v, %v", s, err)
		}
		if back, err := open.Open(again, alice); err != nil || back != s {
			t.Fatalf("%+v became %+v, %v", s, back, err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	c := New(newGCM(b), fixed)
	id, _ := c.Seal(Session{Upstream: "0198c5a2-7c1e-7d3a-9c11-5a4f1d2e3b4c", ProtocolVersion: "2025-11-25"}, alice)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Open(id, alice); err != nil {
			b.Fatal(err)
		}
	}
}

// away is a Sealer whose key cannot be looked up.
type away struct{ gcm }

func (away) Open(string, []byte) ([]byte, error) { return nil, storage.ErrUnavailable }

// A client does not give up what may be good: that it cannot be opened just now is no "unknown".
func TestKeyLookupFails(t *testing.T) {
	c := New(away{newGCM(t)}, nil)
	_, session := c.Open("text", Binding{})
	_, endpoint := c.OpenEndpoint("text", Binding{})
	_, cursor := c.OpenCursor("text", "tools/list", Binding{})
	for _, err := range []error{session, endpoint, cursor} {
		if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrUnknownSession) || errors.Is(err, ErrUnknownCursor) {
			t.Error(err)
		}
	}
}
