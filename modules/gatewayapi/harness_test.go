package gatewayapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/uuid"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/internal/ops/jobs"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/modules/providers"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const publicURL = "https://gate.example.test"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

var kinds = map[string]accounts.Protocol{"openai": providers.OpenAI{}, "anthropic": providers.Anthropic{}}

type object = map[string]any

// api is the handler over a real store and sealing.
type api struct {
	t       *testing.T
	handler *Handler
	core    *app.Core
	store   *faultyStore
	memory  *accounts.Memory
	// alice and adam belong to one organization, eve is the administrator of another.
	alice, adam, eve *authn.Caller
}

// faultyStore fails what tests need to fail, while err is set.
type faultyStore struct {
	storage.Store
	err error
}

func (f *faultyStore) APIKeys(ctx context.Context, organization string) ([]storage.APIKey, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.APIKeys(ctx, organization)
}

func (f *faultyStore) RevokeAPIKey(ctx context.Context, organization, id string, at time.Time) (storage.APIKey, error) {
	if f.err != nil {
		return storage.APIKey{}, f.err
	}
	return f.Store.RevokeAPIKey(ctx, organization, id, at)
}

func newAPI(t *testing.T) *api {
	t.Helper()
	store := sqlitetest.Open(t)
	now := func() time.Time { return start }
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, now)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{t: t, store: &faultyStore{Store: store}}
	epochs := new(cache.Epochs)
	t.Cleanup(store.OnChange(epochs.Bump))
	a.core = &app.Core{
		Admitter:  admissiontest.New(t, epochs, store, now),
		PublicURL: publicURL, Store: a.store, Keyring: keyring, Guard: netguard.New(netguard.Policy{}),
		Sizes: settings.Sizes{API: 1 << 20, Meta: 64 << 10}, Log: slog.New(slog.DiscardHandler),
	}
	a.core.Jobs = jobs.New(jobs.Options{Store: store, Vault: keyring, Node: "node", Now: now, Log: slog.New(slog.DiscardHandler)})
	a.core.Approvals = approval.New(approval.Options{Store: store, Vault: keyring, Bell: new(approval.Bell), Clients: []string{"console"}, Now: now})
	if a.memory, err = accounts.NewMemory(epochs, now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.memory.Close)
	a.configure(kinds)
	a.handler = &Handler{now: now, logger: zap.NewNop(), router: smart.New(now)}
	a.adam = a.caller("acme", "adam", true)
	a.alice = a.caller("acme", "alice", false)
	a.eve = a.caller("rival", "eve", true)
	return a
}

// configure sets the kinds of providers, and the accounts that every organization has.
func (a *api) configure(kinds map[string]accounts.Protocol, configured ...accounts.AccountSettings) {
	a.t.Helper()
	base, err := accounts.NewBase(kinds, a.core.UpstreamProblem, accounts.Settings{Accounts: configured})
	if err != nil {
		a.t.Fatal(err)
	}
	a.core.Accounts = accounts.New(accounts.Options{Base: base, Memory: a.memory, Store: a.store, Vault: a.core.Keyring})
}

func (a *api) caller(organization, name string, admin bool) *authn.Caller {
	a.t.Helper()
	const issuer = "https://id.example.test"
	o, err := a.store.ResolveOrganization(a.t.Context(), storage.OrganizationClaim{
		Issuer: issuer, Slug: organization, DerivedID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(organization)).String(),
	}, start)
	if err != nil {
		a.t.Fatal(err)
	}
	u, err := a.store.ResolveUser(a.t.Context(), storage.UserClaim{
		OrganizationID: o.ID, Issuer: issuer, Subject: name, DerivedID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String(),
		Kind: storage.UserPerson, Name: name,
	}, start)
	if err != nil {
		a.t.Fatal(err)
	}
	return &authn.Caller{Issuer: issuer, Subject: name, OrganizationID: o.ID, UserID: u.ID, Powers: caller.Powers{Admin: admin}, Agent: "console"}
}

// answer is a response, read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// do makes a request below /api/llm-gateway. body is nil, text that is sent as it is, or a value that is sent as JSON.
func (a *api) do(who *authn.Caller, method, target string, body any, header ...string) answer {
	a.t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			a.t.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	r := httptest.NewRequestWithContext(a.t.Context(), method, publicURL+"/api/llm-gateway"+target, reader)
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	after := caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusTeapot)
		return nil
	})
	if err := a.handler.ServeHTTP(w, app.WithCall(r, &app.Call{Core: a.core, Caller: who}), after); err != nil {
		a.t.Fatalf("%s %s: %v", method, target, err)
	}
	return answer{t: a.t, status: w.Code, header: w.Header(), body: w.Body.String()}
}

// want checks the status and returns the body's object.
func (w answer) want(status int) object {
	w.t.Helper()
	var out object
	w.into(status, &out)
	return out
}

// all does the work of want for an array.
func (w answer) all() []object {
	w.t.Helper()
	var out []object
	w.into(http.StatusOK, &out)
	if out == nil {
		w.t.Errorf("null in place of a list")
	}
	return out
}

func (w answer) into(status int, out any) {
	w.t.Helper()
	if w.status != status {
		w.t.Fatalf("status %d, want %d: %s", w.status, status, w.body)
	}
	if err := json.Unmarshal([]byte(w.body), out); err != nil {
		w.t.Fatalf("%v: %s", err, w.body)
	}
	if w.header.Get("Cache-Control") != "no-store" {
		w.t.Error("the answer may be cached")
	}
}

func (w answer) wantError(status int, name gateway.ErrorName) object {
	w.t.Helper()
	out := w.want(status)
	if out["error"] != string(name) || out["message"] == "" {
		w.t.Errorf("error %v, want %s: %s", out["error"], name, w.body)
	}
	return out
}

// wantBad checks a 400 whose message has each of the parts.
func (w answer) wantBad(parts ...string) {
	w.t.Helper()
	out := w.wantError(http.StatusBadRequest, gateway.BadRequest)
	if len(out) != 2 {
		w.t.Errorf("more than error and message: %s", w.body)
	}
	message, _ := out["message"].(string)
	for _, part := range parts {
		if !strings.Contains(message, part) {
			w.t.Errorf("message %q has no %q", message, part)
		}
	}
	if got := len(strings.Split(message, "; ")); got != len(parts) {
		w.t.Errorf("%d problems, want %d: %s", got, len(parts), message)
	}
}

var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}`)

// wantBody checks the exact bytes of a 200, in which ids of version 7 are ID.
func (w answer) wantBody(want string) {
	w.t.Helper()
	if got := anyID.ReplaceAllString(w.body, "ID"); w.status != http.StatusOK || got != want {
		w.t.Errorf("%d\n got %s\nwant %s", w.status, got, want)
	}
}

// make makes an object and returns its id.
func (a *api) make(who *authn.Caller, path string, body object) string {
	a.t.Helper()
	return a.do(who, http.MethodPost, path, body).want(http.StatusOK)["id"].(string)
}

// models makes a provider and mappings of these aliases to it.
func (a *api) models(who *authn.Caller, aliases ...string) (provider string) {
	a.t.Helper()
	provider = a.make(who, "/admin/providers", object{"name": "OpenAI", "kind": "openai", "api_key": "sk-very-secret"})
	for _, alias := range aliases {
		a.make(who, "/admin/model-mappings", object{"model_alias": alias, "targets": []object{{"provider_id": provider, "model": "upstream-" + alias}}})
	}
	return provider
}
