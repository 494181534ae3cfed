package authn

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

func TestToken(t *testing.T) {
	d := newDoor(t, nil)
	raw := d.issuer.Sign(nil)
	who := d.settled(raw).Caller()
	if !who.Admin || who.Machine || who.OrganizationID != authntest.OrganizationID || who.Agent != "agent" || who.UserID == "" || who.Key != nil {
		t.Errorf("%+v", who)
	}
	if diff := cmp.Diff([]string{"admin", "reader"}, who.Roles); diff != "" {
		t.Error(diff)
	}

	if good := who.ExpiresAt.Sub(time.Unix(d.issuer.Now()+600, 0)); good < 0 || good > 5*time.Minute {
		t.Errorf("it is good for %s after its end", good)
	}

	t.Run("another resource is another verdict", func(t *testing.T) {
		narrow := d.issuer.Sign(map[string]any{"aud": "https://gate.example.com/mcp/demo"})
		d.settles(&d.issuer.Verdicts, func() {
			if _, err := d.Token(t.Context(), narrow, "https://gate.example.com/mcp/demo"); err != nil {
				t.Fatal(err)
			}
		})
		for _, resource := range []string{"", "https://gate.example.com/mcp/other"} {
			if err := d.refused(narrow, resource); !errors.Is(err, token.ErrInvalid) {
				t.Errorf("good for %q too: %v", resource, err)
			}
		}
	})
	t.Run("other rules are another verdict", func(t *testing.T) {
		other := d.other(func(o *Options) { o.RulesID = "other rules" })
		before := d.issuer.Verdicts.Load()
		if _, err := other.Token(t.Context(), raw, ""); err != nil || d.issuer.Verdicts.Load() == before {
			t.Errorf("taken from the rules of another configuration: %v", err)
		}
	})
	t.Run("the same rules without the issuer", func(t *testing.T) {
		other := d.other(func(o *Options) { o.Issuers = nil })
		if b, err := other.Token(t.Context(), raw, ""); !errors.Is(err, token.ErrInvalid) || b.Proven() {
			t.Errorf("%v", err)
		}
	})
	t.Run("a new token of somebody known asks no store", func(t *testing.T) {
		n, before := 0, d.store.resolved.Load()
		d.settles(&d.store.resolved, func() {
			n++
			d.bearer(d.issuer.Sign(map[string]any{"jti": strconv.Itoa(n), "email": "alice@example.com"}))
			if n == 1 && d.store.resolved.Load() == before {
				t.Error("a user's new address went unnoticed")
			}
		})
	})
	t.Run("J22 a token that is too long", func(t *testing.T) {
		before := d.issuer.Verdicts.Load()
		if err := d.refused(raw+strings.Repeat("A", token.MaxSize), ""); !errors.Is(err, token.ErrInvalid) || d.issuer.Verdicts.Load() != before {
			t.Error(err)
		}
	})
	t.Run("an issuer that is not configured", func(t *testing.T) {
		if err := d.refused(d.issuer.Sign(map[string]any{"iss": authntest.IssuerID + "/"}), ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("a signature that was changed", func(t *testing.T) {
		if err := d.refused(raw[:len(raw)-4]+"AAAA", ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("no organization", func(t *testing.T) {
		if err := d.refused(d.issuer.Sign(map[string]any{"org_id": nil}), ""); !errors.Is(err, caller.ErrForbidden) {
			t.Error(err)
		}
	})
	t.Run("J30 the key is gone", func(t *testing.T) {
		d.issuer.Gone = token.ErrInvalid
		defer func() { d.issuer.Gone = nil }()
		if err := d.refused(raw, ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("J32 the keys cannot be had", func(t *testing.T) {
		d.issuer.Gone = token.ErrUnavailable
		defer func() { d.issuer.Gone = nil }()
		if err := d.refused(raw, ""); !errors.Is(err, token.ErrUnavailable) {
			t.Error(err)
		}
	})
	t.Run("J30 the token has expired", func(t *testing.T) {
		d.issuer.Advance(3600)
		if err := d.refused(raw, ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("J32 the store is closed", func(t *testing.T) {
		fresh := d.issuer.Sign(map[string]any{"sub": "bob"})
		if err := d.store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := d.refused(fresh, ""); errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("the memory is closed", func(t *testing.T) {
		d.memory.Close()
		if err := d.refused(d.issuer.Sign(nil), ""); !errors.Is(err, cache.ErrClosed) {
			t.Error(err)
		}
	})
}

// TestPeopleAreAskedForAgain checks that the store is asked about a person again after a minute, and not before.
func TestPeopleAreAskedForAgain(t *testing.T) {
	d := newDoor(t, nil)
	n := 0
	fresh := func() { n++; d.bearer(d.issuer.Sign(map[string]any{"jti": strconv.Itoa(n)})) }
	d.settles(&d.store.resolved, fresh)
	d.turned.Add(int64(peopleKnownFor - 10*time.Second))
	before := d.store.resolved.Load()
	if fresh(); d.store.resolved.Load() != before {
		t.Error("asked before its time")
	}
	d.turned.Add(int64(20 * time.Second))
	if fresh(); d.store.resolved.Load() == before {
		t.Error("not asked again")
	}
}

// TestTokensAreFacts checks that what a token says of its user counts for the user's keys, from the time of its issue.
func TestTokensAreFacts(t *testing.T) {
	d := newDoor(t, nil)
	said := map[string]any{"roles": []string{"r"}, "groups": []string{"g"}, "teams": []string{"t"}, "projects": []string{"p"}}
	who := d.bearer(d.issuer.Sign(said)).Caller()
	user, err := d.store.User(t.Context(), who.OrganizationID, who.UserID)
	if err != nil {
		t.Fatal(err)
	}
	f := user.Facts
	got := [][]string{f.Roles.Names, f.Groups.Names, f.Teams.Names, f.Projects.Names}
	if diff := cmp.Diff([][]string{who.Roles, who.Groups, who.Teams, who.Projects}, got); diff != "" || len(who.Roles) != 1 || len(who.Groups) != 1 {
		t.Errorf("%s, %+v", diff, who)
	}
	if user.FactsAt.Unix() != d.issuer.Now() {
		t.Errorf("they are of %s", user.FactsAt)
	}
}

// TestLongestToken checks that a token of the greatest length is read.
func TestLongestToken(t *testing.T) {
	d := newDoor(t, nil)
	padded := func(n int) string { return d.issuer.Sign(map[string]any{"pad": strings.Repeat("x", n)}) }
	n := (token.MaxSize - len(padded(0))) * 3 / 4
	for len(padded(n)) < token.MaxSize {
		n++
	}
	if size := len(padded(n)); size != token.MaxSize {
		t.Fatalf("its length is %d", size)
	}
	d.bearer(padded(n))
}

// TestResolvedOrganizations checks that the organization which a token named is told, and that of the configuration is
// not.
func TestResolvedOrganizations(t *testing.T) {
	var told []string
	resolved := func(o storage.Organization, _ time.Time) { told = append(told, o.ID) }
	d := newDoor(t, func(o *Options) { o.Resolved = resolved })
	d.bearer(d.issuer.Sign(nil))
	if diff := cmp.Diff([]string{authntest.OrganizationID}, told); diff != "" {
		t.Error(diff)
	}
	fixed := d.other(func(o *Options) {
		o.Issuers, o.RulesID, o.Resolved = map[string]Issuer{authntest.IssuerID: fixedIssuer{d.issuer}}, "fixed", resolved
	})
	b, err := fixed.Token(t.Context(), d.issuer.Sign(map[string]any{"org_id": nil}), "")
	if err != nil || b.Caller().OrganizationID != authntest.OrganizationID || len(told) != 1 {
		t.Errorf("%v, told %q", err, told)
	}
}

// fixedIssuer is an issuer whose tokens are of one organization.
type fixedIssuer struct{ *authntest.Issuer }

func (i fixedIssuer) Rules() caller.Rules {
	return caller.Rules{Mapping: caller.Mapping{Organization: authntest.OrganizationID}}
}

// TestNotes checks that the requests of one person share notes, and nobody else's do.
func TestNotes(t *testing.T) {
	d := newDoor(t, nil)
	n := 0
	var first *notes
	d.settles(&d.store.resolved, func() {
		n++
		first = d.bearer(d.issuer.Sign(map[string]any{"jti": strconv.Itoa(n)})).Notes().(*notes)
	})
	for name, tc := range map[string]struct {
		claims map[string]any
		same   bool
	}{
		"another token":        {map[string]any{"jti": "another"}, true},
		"another user":         {map[string]any{"sub": "bob"}, false},
		"another client":       {map[string]any{"azp": "other"}, false},
		"another organization": {map[string]any{"org_id": "0192f0c1-5bd2-7000-8000-0000000000bb"}, false},
	} {
		if got := d.bearer(d.issuer.Sign(tc.claims)).Notes(); got == nil || (got == first) != tc.same {
			t.Errorf("%s: %p, first %p", name, got, first)
		}
	}
	other := d.other(func(o *Options) { o.RulesID = "other rules" })
	if b, err := other.Token(t.Context(), d.issuer.Sign(nil), ""); err != nil || b.Notes() == first {
		t.Errorf("another configuration: %v", err)
	}
}

// TestNoNotes checks that a memory whose user notes nothing has no notes.
func TestNoNotes(t *testing.T) {
	k := newKeyDoor(t)
	memory, err := NewMemory(MemoryOptions{Epochs: k.epochs, Store: k.store, Now: k.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	k.memory = memory
	raw, _ := k.Make(nil)
	key, err := k.use(raw, here)
	if err != nil || key.Notes() != nil || k.bearer(k.issuer.Sign(nil)).Notes() != nil {
		t.Errorf("there are notes: %v", err)
	}
}

// TestLogin checks whom an ID token names, and that it is no evidence for the user's API keys.
func TestLogin(t *testing.T) {
	d := newDoor(t, nil)
	claims := func(changed map[string]any) *token.Claims {
		t.Helper()
		unverified, err := token.Parse(d.issuer.Sign(changed))
		if err != nil {
			t.Fatal(err)
		}
		read, err := d.issuer.Verifier().VerifyParsed(t.Context(), unverified, "")
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	who, err := d.Login(t.Context(), claims(nil), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if same := d.bearer(d.issuer.Sign(nil)).Caller(); who.UserID != same.UserID || who.OrganizationID != same.OrganizationID || !who.Admin {
		t.Errorf("%+v", who)
	}
	bob, err := d.Login(t.Context(), claims(map[string]any{"sub": "bob", "groups": []string{"sales"}}), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	user, err := d.store.User(t.Context(), bob.OrganizationID, bob.UserID)
	if err != nil || !user.FactsAt.IsZero() {
		t.Errorf("its groups count for keys: %+v, %v", user, err)
	}
	if who, err := d.Login(t.Context(), claims(map[string]any{"gty": "client_credentials"}), time.Time{}); !errors.Is(err, ErrMachine) || who != nil {
		t.Errorf("a machine: %+v, %v", who, err)
	}
	if who, err := d.Login(t.Context(), claims(map[string]any{"org_id": nil}), time.Time{}); !errors.Is(err, caller.ErrForbidden) || who != nil {
		t.Errorf("no organization: %+v, %v", who, err)
	}
	foreign := claims(nil)
	foreign.Issuer = "https://elsewhere.example.com"
	if who, err := d.Login(t.Context(), foreign, time.Time{}); !errors.Is(err, token.ErrInvalid) || who != nil {
		t.Errorf("an issuer that is not configured: %+v, %v", who, err)
	}
	if err := d.store.Close(); err != nil {
		t.Fatal(err)
	}
	if who, err := d.Login(t.Context(), claims(nil), time.Time{}); err == nil || who != nil {
		t.Errorf("the store is closed: %+v, %v", who, err)
	}
}

// BenchmarkTokenUnseen measures the cost of the first request of a token, of a user who is known.
func BenchmarkTokenUnseen(b *testing.B) {
	d := newDoor(b, nil)
	tokens := make([]string, 10_000)
	for n := range tokens {
		tokens[n] = d.issuer.Sign(map[string]any{"jti": strconv.Itoa(n)})
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%len(tokens) == 0 {
			d.rulesID += "." // cached values are not found under these
		}
		if _, err := d.Token(b.Context(), tokens[n%len(tokens)], ""); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkToken measures the cost of every request for knowing its caller, whose token is known.
func BenchmarkToken(b *testing.B) {
	d := newDoor(b, func(o *Options) { o.RegisterAgents = true })
	raw := d.issuer.Sign(nil)
	d.settled(raw)
	b.ReportAllocs()
	for b.Loop() {
		if bearer, err := d.Token(b.Context(), raw, ""); err != nil || bearer.Agent() == nil {
			b.Fatal(err)
		}
	}
}
