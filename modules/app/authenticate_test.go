package app

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite"
)

const issuerID = "https://id.example.com"

// issuer is an identity with one key, which can be taken away, and a clock that can be turned.
type issuer struct {
	key      ed25519.PrivateKey
	gone     error // the key source's error instead of the key
	verifier *token.Verifier
	now      atomic.Int64
	asked    atomic.Int64 // for keys
	verdicts atomic.Int64 // tokens that were verified anew
}

func (i *issuer) Bind(Binding) error        { return nil }
func (i *issuer) IssuerID() string          { return issuerID }
func (i *issuer) Verifier() *token.Verifier { return i.verifier }
func (i *issuer) Rules() caller.Rules {
	i.verdicts.Add(1)
	return caller.Rules{Mapping: caller.Mapping{}, AdminRole: "admin"}
}

func (i *issuer) Key(context.Context, string, string) (any, error) {
	i.asked.Add(1)
	if i.gone != nil {
		return nil, i.gone
	}
	return i.key.Public(), nil
}

func (i *issuer) time() time.Time { return time.Unix(i.now.Load(), 0) }

func (i *issuer) sign(more map[string]any) string {
	claims := map[string]any{
		"iss": issuerID, "sub": "alice", "aud": "https://gate.example.com", "org_id": "0192f0c1-5bd2-7000-8000-0000000000aa",
		"iat": i.now.Load(), "exp": i.now.Load() + 600, "roles": []string{"admin", "reader"}, "azp": "agent",
	}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, claim any) bool { return claim == nil })
	header, _ := json.Marshal(map[string]any{"alg": "EdDSA", "kid": "k"})
	payload, _ := json.Marshal(claims)
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(text)))
}

// countingStore counts how often callers are resolved.
type countingStore struct {
	storage.Store
	resolved atomic.Int64
}

func (s *countingStore) ResolveUser(ctx context.Context, c storage.UserClaim, now time.Time) (storage.User, error) {
	s.resolved.Add(1)
	return s.Store.ResolveUser(ctx, c, now)
}

func newAuthenticator(t testing.TB) (*Core, *issuer, *countingStore) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	i.now.Store(time.Now().Unix())
	i.verifier, err = token.NewVerifier(token.Options{Issuer: issuerID, Audiences: []string{"https://gate.example.com"}}, i, i.time)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "durward.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := &countingStore{Store: opened}
	r := &resources{store: store, epochs: new(cache.Epochs)}
	if err := r.makeCaches(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.closeCaches()
		_ = store.Close()
	})
	return &Core{Store: store, Log: slog.New(slog.DiscardHandler), resources: r, identities: map[string]Identity{issuerID: i}, rulesID: "rules"}, i, store
}

// settle asks until the cache, which stores in the background, has the token.
func settle(t *testing.T, core *Core, i *issuer, raw, resource string) *Caller {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		before := i.verdicts.Load()
		who, err := core.Authenticate(t.Context(), raw, resource)
		if err != nil {
			t.Fatal(err)
		}
		if i.verdicts.Load() == before {
			return who
		}
		if time.Now().After(deadline) {
			t.Fatal("the token is never kept")
		}
	}
}

func TestAuthenticate(t *testing.T) {
	core, i, store := newAuthenticator(t)
	raw := i.sign(nil)
	who := settle(t, core, i, raw, "")
	if !who.Admin || who.Machine || who.OrganizationID != "0192f0c1-5bd2-7000-8000-0000000000aa" || who.Agent != "agent" || who.UserID == "" {
		t.Errorf("%+v", who)
	}
	if diff := cmp.Diff([]string{"admin", "reader"}, who.Roles); diff != "" {
		t.Error(diff)
	}

	t.Run("another resource is another verdict", func(t *testing.T) {
		narrow := i.sign(map[string]any{"aud": "https://gate.example.com/mcp/demo"})
		settle(t, core, i, narrow, "https://gate.example.com/mcp/demo")
		for _, resource := range []string{"", "https://gate.example.com/mcp/other"} {
			if _, err := core.Authenticate(t.Context(), narrow, resource); !errors.Is(err, token.ErrInvalid) {
				t.Errorf("good for %q too: %v", resource, err)
			}
		}
	})
	t.Run("other rules are another verdict", func(t *testing.T) {
		other := &Core{Store: store, resources: core.resources, identities: core.identities, rulesID: "other rules"}
		before := i.verdicts.Load()
		if _, err := other.Authenticate(t.Context(), raw, ""); err != nil || i.verdicts.Load() == before {
			t.Errorf("taken from the rules of another configuration: %v", err)
		}
	})
	t.Run("a new token of somebody known asks no store", func(t *testing.T) {
		deadline := time.Now().Add(30 * time.Second)
		for n := 0; ; n++ {
			before := store.resolved.Load()
			next := i.sign(map[string]any{"jti": strconv.Itoa(n), "email": "alice@example.com"})
			if _, err := core.Authenticate(t.Context(), next, ""); err != nil {
				t.Fatal(err)
			}
			asked := store.resolved.Load() != before
			if n == 0 && !asked {
				t.Error("a user's new address went unnoticed")
			}
			if !asked {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("the user is never kept") // the cache stores in the background
			}
		}
	})
	t.Run("an issuer that is not configured", func(t *testing.T) {
		if _, err := core.Authenticate(t.Context(), i.sign(map[string]any{"iss": issuerID + "/"}), ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("a signature that was changed", func(t *testing.T) {
		if _, err := core.Authenticate(t.Context(), raw[:len(raw)-4]+"AAAA", ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("J30 the key is gone", func(t *testing.T) {
		i.gone = token.ErrInvalid
		defer func() { i.gone = nil }()
		if _, err := core.Authenticate(t.Context(), raw, ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("J32 the keys cannot be had", func(t *testing.T) {
		i.gone = token.ErrUnavailable
		defer func() { i.gone = nil }()
		if who, err := core.Authenticate(t.Context(), raw, ""); !errors.Is(err, token.ErrUnavailable) || who != nil {
			t.Error(who, err)
		}
	})
	t.Run("J30 the token has expired", func(t *testing.T) {
		i.now.Add(3600)
		if _, err := core.Authenticate(t.Context(), raw, ""); !errors.Is(err, token.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("J32 the store is closed", func(t *testing.T) {
		fresh := i.sign(map[string]any{"sub": "bob"})
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if who, err := core.Authenticate(t.Context(), fresh, ""); err == nil || errors.Is(err, token.ErrInvalid) || who != nil {
			t.Error(who, err)
		}
	})
}

func TestPlaceholders(t *testing.T) {
	replacer := caddy.NewReplacer()
	r := httptest.NewRequest("POST", "/mcp/demo", nil)
	r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, replacer))
	call := &Call{Caller: &Caller{OrganizationID: "o", UserID: "u", Agent: "a", Email: "canary@example.test"}}
	call.Annotate(r)
	call.Server = &storage.Server{Slug: "demo"} // values that later steps add are seen
	call.Log = CallLog{Method: "tools/call", Tool: "echo", Session: "s"}
	text := "{durward.org} {durward.user} {http.auth.user.id} {durward.agent} {durward.server} {durward.method} {durward.tool} {durward.secret}"
	if got := replacer.ReplaceAll(text, "-"); got != "o u u a demo tools/call echo -" {
		t.Errorf("placeholders: %s", got)
	}
	(&Call{}).Annotate(httptest.NewRequest("GET", "/", nil))
}
