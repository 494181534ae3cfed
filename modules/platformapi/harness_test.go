package platformapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/refused"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/mcp/pinning"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/mcp/tasks"
	"github.com/durward-gateway/durward/internal/ops/jobs"
	"github.com/durward-gateway/durward/internal/ops/probe"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/connections"
	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/readiness"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const publicURL = "https://gate.example.test"

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// nowhere is a network in which no name resolves.
type nowhere struct{}

func (nowhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
}

// api is the handler over a real store, sealing and broker, without a network.
type api struct {
	t       *testing.T
	handler *Handler
	core    *app.Core
	store   *faultyStore
	log     *bytes.Buffer
	// alice and adam belong to one organization, eve is the administrator of another.
	alice, adam, eve *authn.Caller
}

// faultyStore fails calls while err is set, and lets a test step in between.
type faultyStore struct {
	storage.Store
	err               error
	beforeEntryUpdate func()
}

func (f *faultyStore) UpdateDirectoryEntry(ctx context.Context, organization, id string, edit func(*storage.DirectoryEntry) error) (storage.DirectoryEntry, error) {
	if f.beforeEntryUpdate != nil {
		f.beforeEntryUpdate()
	}
	return f.Store.UpdateDirectoryEntry(ctx, organization, id, edit)
}

// Ping asks no disk: a slow one would miss the deadline of a readiness check, which is right and no test's business.
func (f *faultyStore) Ping(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("the check has no deadline")
	}
	return f.err
}

func (f *faultyStore) Servers(ctx context.Context, filter storage.ServerFilter) (storage.Page[storage.ServerView], error) {
	if f.err != nil {
		return storage.Page[storage.ServerView]{}, f.err
	}
	return f.Store.Servers(ctx, filter)
}

func newAPI(t *testing.T) *api {
	t.Helper()
	store := sqlitetest.Open(t)
	a := &api{t: t, store: &faultyStore{Store: store}, log: &bytes.Buffer{}}
	now := func() time.Time { return start }
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, now)
	if err != nil {
		t.Fatal(err)
	}
	guard := netguard.New(netguard.Policy{}, netguard.WithResolver(nowhere{}))
	epochs := &cache.Epochs{}
	t.Cleanup(store.OnChange(epochs.Bump))
	memory, err := connection.NewMemory(epochs, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	broker, err := connection.New(connection.Config{
		Store: a.store, Keyring: keyring, OAuth: oauth.New(guard, now), Memory: memory, CheckURL: guard.CheckURL,
		PublicURL: publicURL, ReturnURLs: []string{publicURL}, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	servers, err := evaluator.NewMemory(epochs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	pins, err := pinning.NewMemory(epochs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pins.Close)
	a.core = &app.Core{
		Evaluator: evaluator.New(evaluator.Options{Memory: servers, Store: store}), Pins: pinning.New(pinning.Options{Memory: pins, Store: store, Now: now}),
		PublicURL: publicURL, Store: a.store, Keyring: keyring, Guard: guard, Broker: broker, Streams: &streams.Registry{}, Tasks: &tasks.Owners{Store: store, Now: now},
		Sizes: settings.Sizes{API: 1 << 20, Meta: 64 << 10}, Log: slog.New(slog.DiscardHandler),
		Tests:   probe.NewTests(probe.TestsOptions{Guard: guard, Counters: window.New(now), Store: a.store, Log: slog.New(slog.DiscardHandler), Now: now}),
		Metrics: &metrics.Traffic{Connections: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "connections_total", Help: "As in the app."}, []string{"event"})},
	}
	models, err := accounts.NewMemory(epochs, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(models.Close)
	a.core.Accounts = accounts.New(accounts.Options{Base: new(accounts.Base), Memory: models, Store: a.store, Vault: keyring})
	a.core.Jobs = jobs.New(jobs.Options{Store: a.store, Vault: keyring, Node: "node", Now: now, Log: slog.New(slog.DiscardHandler)})
	a.core.Readiness = readiness.New(readiness.Options{Look: a.store.Ping, Stored: true})
	a.core.Connections = connections.New(broker, a.core.Streams, a.core.Metrics)
	a.core.Refused = issuers.NewRefusedTokens(&a.core.Issuers, new(refused.Book), now)
	a.core.Approvals = approval.New(approval.Options{Store: a.store, Vault: keyring, Bell: new(approval.Bell), Clients: []string{console}, Now: now})
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	a.handler = &Handler{now: now, streamsOpen: true, logger: zap.New(zapcore.NewCore(encoder, zapcore.AddSync(a.log), zap.DebugLevel))}
	a.adam = a.caller("acme", "adam", true)
	a.alice = a.caller("acme", "alice", false)
	a.eve = a.caller("rival", "eve", true)
	return a
}

// console is the client that the callers' tokens are from, with which users decide on held calls.
const console = "console"

// machine makes a user that is a machine, and returns its id.
func (a *api) machine(organization, name string) string {
	a.t.Helper()
	u, err := a.store.ResolveUser(a.t.Context(), storage.UserClaim{
		OrganizationID: a.organization(organization).ID, Issuer: issuer, Subject: name, DerivedID: derived(name), Kind: storage.UserMachine,
	}, start)
	if err != nil {
		a.t.Fatal(err)
	}
	return u.ID
}

const issuer = "https://id.example.test"

func derived(name string) string { return uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String() }

func (a *api) organization(slug string) storage.Organization {
	a.t.Helper()
	o, err := a.store.ResolveOrganization(a.t.Context(), storage.OrganizationClaim{Issuer: issuer, Slug: slug, DerivedID: derived(slug)}, start)
	if err != nil {
		a.t.Fatal(err)
	}
	return o
}

func (a *api) caller(organization, name string, admin bool) *authn.Caller {
	a.t.Helper()
	o := a.organization(organization)
	u, err := a.store.ResolveUser(a.t.Context(), storage.UserClaim{
		OrganizationID: o.ID, Issuer: issuer, Subject: name, DerivedID: derived(name),
		Kind: storage.UserPerson, Name: name,
	}, start)
	if err != nil {
		a.t.Fatal(err)
	}
	return &authn.Caller{Issuer: issuer, Subject: name, OrganizationID: o.ID, UserID: u.ID, Powers: caller.Powers{Admin: admin}, Agent: console}
}

// answer is a response, read.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// do makes a request. body is nil, text that is sent as it is, or a value that is sent as JSON.
func (a *api) do(who *authn.Caller, method, target string, body any) answer {
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
	r := httptest.NewRequestWithContext(a.t.Context(), http.MethodGet, publicURL, reader)
	u, err := url.Parse(publicURL + target)
	if err != nil {
		u = &url.URL{Path: target}
	}
	r.Method, r.URL = method, u
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return a.send(who, r)
}

func (a *api) send(who *authn.Caller, r *http.Request) answer {
	a.t.Helper()
	w := httptest.NewRecorder()
	if err := a.handler.ServeHTTP(w, app.WithCall(r, &app.Call{Core: a.core, Caller: who}), nil); err != nil {
		a.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	return answer{t: a.t, status: w.Code, header: w.Header(), body: w.Body.String()}
}

func (w answer) wantStatus(status int) {
	w.t.Helper()
	if w.status != status {
		w.t.Fatalf("status %d, want %d: %s", w.status, status, w.body)
	}
}

// want checks the status and returns the body's object.
func (w answer) want(status int) map[string]any {
	w.t.Helper()
	w.wantStatus(status)
	if status == http.StatusNoContent {
		if w.body != "" {
			w.t.Errorf("204 with a body: %s", w.body)
		}
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(w.body), &out); err != nil {
		w.t.Fatalf("%v: %s", err, w.body)
	}
	if kind := w.header.Get("Content-Type"); kind != "application/json" {
		w.t.Errorf("Content-Type %q", kind)
	}
	return out
}

// wantError checks status and name of a service error.
func (w answer) wantError(status int, name gateway.ErrorName) map[string]any {
	w.t.Helper()
	out := w.want(status)
	if out["error"] != string(name) || out["message"] == "" {
		w.t.Errorf("error %v, want %s: %s", out["error"], name, w.body)
	}
	return out
}

// wantProblems checks a 422, given as "loc0.loc1 type".
func (w answer) wantProblems(want ...string) {
	w.t.Helper()
	w.wantStatus(http.StatusUnprocessableEntity)
	var body struct {
		Detail []struct {
			Loc       []any
			Msg, Type string
		}
	}
	if err := json.Unmarshal([]byte(w.body), &body); err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, d := range body.Detail {
		var loc []string
		for _, step := range d.Loc {
			text, _ := json.Marshal(step)
			loc = append(loc, strings.Trim(string(text), `"`))
		}
		got = append(got, strings.Join(loc, ".")+" "+d.Type)
		if d.Msg == "" {
			w.t.Errorf("a problem without a message: %s", w.body)
		}
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		w.t.Errorf("problems %q\nwant     %q", got, want)
	}
}

type object = map[string]any

// entry makes a custom directory entry of the caller's organization and returns its id.
func (a *api) entry(who *authn.Caller, members object) string {
	a.t.Helper()
	body := object{"name": "Tracker", "url": "https://mcp.tracker.example/mcp"}
	for name, value := range members {
		body[name] = value
	}
	return a.do(who, http.MethodPost, "/api/server-directory", body).want(http.StatusOK)["id"].(string)
}

// server makes a server and returns its id.
func (a *api) server(who *authn.Caller, name, entry string) string {
	a.t.Helper()
	return a.do(who, http.MethodPost, "/api/servers?test=false", object{"name": name, "mcp_server_directory_id": entry}).want(http.StatusOK)["id"].(string)
}
