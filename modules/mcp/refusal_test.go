package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	mcpsession "github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// page is the address at which a user connects in these tests.
const page = "https://gate.example/connect/tracker"

// refusing returns an exchange whose credential cannot be had.
func refusing(t *testing.T, version, body string, session mcpsession.Session) (*exchange, *httptest.ResponseRecorder) {
	t.Helper()
	message, err := jsonrpc.Parse([]byte(body), strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/demo", nil)
	if version != "" {
		r.Header.Set("MCP-Protocol-Version", version)
	}
	return &exchange{
		Request: &inbound.Request{HTTP: r, Message: message, Session: session}, handler: &Handler{Carrier: app.Carrier{Logger: zap.NewNop()}}, w: w, r: r,
		call: &app.Call{Core: &app.Core{PublicURL: "https://gate.example"}, Credentials: noCredential{}, Server: &storage.Server{ID: "server-id", Slug: "tracker"}},
	}, w
}

// TestRefuseCredential checks that how a user learns that a connection is needed depends on what their client can show
// (section 3.5 of the protocol's error table).
func TestRefuseCredential(t *testing.T) {
	call := func(method, meta string) string {
		if meta != "" {
			meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + meta + "}"
		}
		return `{"jsonrpc":"2.0","id":"a\u0062","method":"` + method + `","params":{"name":"x","uri":"x"` + meta + "}}"
	}
	session := mcpsession.Session{Upstream: "u", ProtocolVersion: "2025-11-25"}
	withURL := mcpsession.Session{Upstream: "u", ProtocolVersion: "2025-11-25", ElicitURL: true}
	older := mcpsession.Session{Upstream: "u", ProtocolVersion: "2025-06-18", ElicitForm: true}
	for _, tc := range []struct {
		name, version, body string
		session             mcpsession.Session
		want                string // input_required, -32042, isError, -31401, 403
	}{
		{"initialize", "", call("initialize", ""), mcpsession.Session{}, "403"},
		{"no session, so no conversation", "2025-11-25", call("tools/call", ""), mcpsession.Session{}, "403"},
		{"a list in a session", "2025-11-25", call("tools/list", ""), withURL, "403"},
		{"2025-11-25, pages", "2025-11-25", call("tools/call", ""), withURL, "-32042"},
		{"2025-11-25, pages, resource", "2025-11-25", call("resources/read", ""), withURL, "-32042"},
		{"2025-11-25, no pages", "2025-11-25", call("tools/call", ""), session, "isError"},
		{"2025-11-25, no pages, prompt", "2025-11-25", call("prompts/get", ""), session, "-31401"},
		{"2025-06-18", "2025-06-18", call("tools/call", ""), older, "isError"},
		{"asked for 2025-11-25, agreed on 2025-06-18", "2025-06-18", call("tools/call", ""), withURL, "isError"},
		{"no header: what was asked for counts", "", call("tools/call", ""), withURL, "-32042"},
		{"2025-03-26, resource", "", call("resources/read", ""), mcpsession.Session{Upstream: "u", ProtocolVersion: "2025-03-26"}, "-31401"},
		{"2026-07-28, pages", "2026-07-28", call("tools/call", `{"elicitation":{"url":{}}}`), mcpsession.Session{}, "input_required"},
		{"2026-07-28, pages, resource", "2026-07-28", call("resources/read", `{"elicitation":{"url":{}}}`), mcpsession.Session{}, "input_required"},
		{"2026-07-28, forms only", "2026-07-28", call("tools/call", `{"elicitation":{}}`), mcpsession.Session{}, "isError"},
		{"2026-07-28, nothing, prompt", "2026-07-28", call("prompts/get", "{}"), mcpsession.Session{}, "-31401"},
		{"2026-07-28, list", "2026-07-28", call("tools/list", `{"elicitation":{"url":{}}}`), mcpsession.Session{}, "403"},
		{"a notification", "2026-07-28", `{"jsonrpc":"2.0","method":"tools/call"}`, mcpsession.Session{}, "403"},
		{"a batch", "", "[" + call("tools/call", "") + "]", mcpsession.Session{Upstream: "u", ProtocolVersion: "2025-03-26"}, "403"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x, w := refusing(t, tc.version, tc.body, tc.session)
			x.refuseCredential(t.Context(), &connection.NotConnectedError{Reason: "the access has expired"})
			if x.outcome != "not_connected" || w.Header().Get("Www-Authenticate") != "" {
				t.Errorf("outcome %s, %v", x.outcome, w.Header())
			}
			var answer struct {
				ID     string
				Error  json.RawMessage
				Result struct {
					ResultType    string
					IsError       bool
					Content       []struct{ Text string }
					InputRequests map[string]struct {
						Method string
						Params struct{ Mode, URL string }
					}
				}
				Details struct {
					ConnectURL string `json:"connect_url"`
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%s: %v", w.Body, err)
			}
			var failure struct {
				Code int
				Data struct {
					Elicitations []struct{ Mode, URL, ElicitationID string }
					Error        string
					Details      struct {
						ConnectURL string `json:"connect_url"`
					}
				}
			}
			_ = json.Unmarshal(answer.Error, &failure)
			if tc.want == "403" {
				if w.Code != http.StatusForbidden || string(answer.Error) != `"ServerNotConnected"` || answer.Details.ConnectURL != page {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				return
			}
			if w.Code != http.StatusOK || answer.ID != "ab" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			modern := tc.version == "2026-07-28"
			switch tc.want {
			case "input_required":
				asked := answer.Result.InputRequests["durward_connect"]
				if answer.Result.ResultType != "input_required" || asked.Method != "elicitation/create" || asked.Params.Mode != "url" || asked.Params.URL != page {
					t.Errorf("%s", w.Body)
				}
			case "-32042":
				if list := failure.Data.Elicitations; failure.Code != -32042 || len(list) != 1 || list[0].Mode != "url" || list[0].URL != page || list[0].ElicitationID == "" {
					t.Errorf("%s", w.Body)
				}
			case "isError":
				if list := answer.Result.Content; !answer.Result.IsError || len(list) != 1 || list[0].Text != textLost+page+textThen || (answer.Result.ResultType == "complete") != modern {
					t.Errorf("%s", w.Body)
				}
			case "-31401":
				if failure.Code != -31401 || failure.Data.Error != "ServerNotConnected" || failure.Data.Details.ConnectURL != page {
					t.Errorf("%s", w.Body)
				}
			}
		})
	}
}

// TestRefuseForOtherReasons checks that a fault that the user cannot mend is a 503, and never a call without a
// credential.
func TestRefuseForOtherReasons(t *testing.T) {
	for _, tc := range []struct {
		name, outcome string
		err           error
		retry         string
	}{
		{"the provider is away", "unavailable", &connection.UnavailableError{RetryAfter: 90 * time.Second}, "90"},
		{"the provider is away for a moment", "unavailable", &connection.UnavailableError{}, "1"},
		{"the store is away", "error", storage.ErrUnavailable, "5"},
		{"anything else", "error", errors.New("secret cause"), "5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x, w := refusing(t, "", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, mcpsession.Session{Upstream: "u"})
			x.refuseCredential(t.Context(), tc.err)
			if w.Code != http.StatusServiceUnavailable || x.outcome != tc.outcome || w.Header().Get("Retry-After") != tc.retry {
				t.Errorf("%d %s, outcome %s, Retry-After %s", w.Code, w.Body, x.outcome, w.Header().Get("Retry-After"))
			}
		})
	}
}

// oneConnection is a store with one user's connection.
type oneConnection struct {
	storage.Store
	connection storage.Connection
	keys       []storage.DataKey
}

func (o *oneConnection) DataKeys(context.Context) ([]storage.DataKey, error) { return o.keys, nil }

func (o *oneConnection) AddDataKey(_ context.Context, k storage.DataKey) error {
	o.keys = append(o.keys, k)
	return nil
}

func (o *oneConnection) Connection(context.Context, storage.ConnectionKey) (storage.Connection, error) {
	return o.connection, nil
}

func (o *oneConnection) UpdateConnection(ctx context.Context, _ storage.ConnectionKey, edit func(context.Context, *storage.Connection) error) (storage.Connection, error) {
	return o.connection, edit(ctx, &o.connection)
}

// brokerOver makes a broker without a network.
func brokerOver(t *testing.T, store storage.Store) *connection.Broker {
	t.Helper()
	memory, err := connection.NewMemory(new(cache.Epochs), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	guard := netguard.New(netguard.Policy{})
	b, err := connection.New(connection.Config{
		Store: store, Keyring: keyring, OAuth: oauth.New(guard, time.Now), Memory: memory, CheckURL: guard.CheckURL,
		PublicURL: "https://gate.example", Now: time.Now, Count: func(connection.Event) {}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestW05MissingPermission checks that an upstream that asks for a wider scope is not an account that is not connected,
// and the user is told so. The page that they are led to must not say that all is well, also when the upstream names no
// scope.
func TestW05MissingPermission(t *testing.T) {
	for _, scope := range []string{"", "files:write"} {
		for _, tc := range []struct {
			method  string
			session mcpsession.Session
			status  int
			says    []string
		}{
			{"tools/call", mcpsession.Session{Upstream: "u"}, http.StatusOK, []string{textScope, "https://"}},
			{"initialize", mcpsession.Session{}, http.StatusForbidden, []string{"a permission is missing"}},
		} {
			x, w := refusing(t, "", `{"jsonrpc":"2.0","id":1,"method":"`+tc.method+`","params":{"name":"x"}}`, tc.session)
			x.call.Caller, x.call.Core.Broker = &authn.Caller{}, brokerOver(t, new(oneConnection))
			x.refuseScope(t.Context(), scope)
			for _, says := range tc.says {
				if text := w.Body.String(); w.Code != tc.status || !strings.Contains(text, says) {
					t.Errorf("%s: %d %s", tc.method, w.Code, text)
				}
			}
			if enough, err := x.call.Core.Broker.GivesEnough(t.Context(), storage.ConnectionKey{}); err != nil || enough {
				t.Errorf("%s for scope %q: the connection gives enough (%v)", tc.method, scope, err)
			}
		}
	}
}
