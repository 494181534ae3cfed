package approval_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// keys implements storage.DataKeys in memory.
type keys struct{ all []storage.DataKey }

func (k *keys) DataKeys(context.Context) ([]storage.DataKey, error) { return k.all, nil }

func (k *keys) AddDataKey(_ context.Context, key storage.DataKey) error {
	k.all = append(k.all, key)
	return nil
}

func sealer(t testing.TB) *seal.TokenSealer {
	t.Helper()
	master, err := seal.ParseMasterKey(seal.NewSecret("9f2c7be1044d8a63d5f0c8127ab3e96511de40782fb6c93a5e08d174ac4b6f02"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := seal.OpenKeyring(context.Background(), []seal.MasterKey{master}, new(keys), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ring.Sealer("approval")
}

const (
	id1 = "01890a5d-ac96-774b-bcce-b302099a8057"
	id2 = "01890a5d-ac96-774b-bcce-b302099a8058"

	home = "https://gate.example.com"
)

var who = approval.Asker{Organization: "o", User: "alice", Client: "agent-a", Server: "s", Session: "u"}

// others returns callers that differ from who in one fact each.
func others() map[string]approval.Asker {
	out := make(map[string]approval.Asker)
	for name, change := range map[string]func(*approval.Asker){
		"organization":        func(a *approval.Asker) { a.Organization = "o2" },
		"user":                func(a *approval.Asker) { a.User = "bob" },
		"client":              func(a *approval.Asker) { a.Client = "" },
		"issuer":              func(a *approval.Asker) { a.Issuer = "https://other.example" },
		"server":              func(a *approval.Asker) { a.Server = "s2" },
		"session":             func(a *approval.Asker) { a.Session = "" },
		"user of that length": func(a *approval.Asker) { a.User = "clara" },
		"run together":        func(a *approval.Asker) { a.User, a.Client = "alicea", "gent-a" },
	} {
		a := who
		change(&a)
		out[name] = a
	}
	return out
}

// TestState covers M18: a state opens only for its caller, only unchanged, and only until its expiry.
func TestState(t *testing.T) {
	now := time.Unix(5000, 0).UTC()
	states := approval.NewStates(sealer(t), home, func() time.Time { return now })
	for _, want := range []approval.State{
		{Mode: approval.ModeForm, ApprovalID: id1, ExpiresAt: now.Add(time.Minute)},
		{Mode: approval.ModePage, ApprovalID: id1, ExpiresAt: now.Add(time.Minute)},
		{Mode: approval.ModeProof, ApprovalID: id1, Round: id2, ExpiresAt: now.Add(time.Minute), HasUpstream: true},
		{Mode: approval.ModeProof, ApprovalID: id1, Round: id2, ExpiresAt: now.Add(time.Minute), HasUpstream: true, Upstream: "tickets\x00, ünd mehr"},
	} {
		text, err := states.Seal(want, who)
		if err != nil || !states.IsState(text) {
			t.Fatal(text, err)
		}
		got, err := states.Open(text, who)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		for name, other := range others() {
			if _, err := states.Open(text, other); !errors.Is(err, approval.ErrState) {
				t.Errorf("opens for another %s: %v", name, err)
			}
		}
		for i := range len(text) {
			changed := []byte(text)
			changed[i] ^= 1
			if _, err := states.Open(string(changed), who); !errors.Is(err, approval.ErrState) {
				t.Errorf("byte %d changed: %v", i, err)
			}
		}
		ask, err := states.Ask(id1, who)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := states.Answered(prefixOf(ask)+text[len(statePrefixOf(text)):], who); !errors.Is(err, approval.ErrState) {
			t.Error("a state is taken for an ask")
		}
		now = now.Add(time.Minute)
		if _, err := states.Open(text, who); !errors.Is(err, approval.ErrState) {
			t.Errorf("too late: %v", err)
		}
		now = now.Add(-time.Minute)
	}
	// An upstream may be a gateway too, and only that gateway may open its states.
	theirs, err := approval.NewStates(sealer(t), "https://other.example.com", nil).Seal(approval.State{Mode: approval.ModeForm, ApprovalID: id1, ExpiresAt: now}, who)
	if err != nil || states.IsState(theirs) || states.IsState("dw1.x") {
		t.Errorf("%s is taken for the gateway's own: %v", theirs, err)
	}
	if _, err := states.Seal(approval.State{Mode: approval.ModeForm, ApprovalID: "1"}, who); err == nil {
		t.Error("sealed without an approval")
	}
	if _, err := states.Seal(approval.State{Mode: approval.ModeForm, ApprovalID: id1, Round: "1"}, who); err == nil {
		t.Error("sealed with a strange round")
	}
}

// TestAsk covers M18: the answer to a question is recognized by its id, only for the session that was asked.
func TestAsk(t *testing.T) {
	states := approval.NewStates(sealer(t), home, nil)
	first, err := states.Ask(id1, who)
	if err != nil {
		t.Fatal(err)
	}
	second, err := states.Ask(id1, who)
	if err != nil || first == second {
		t.Errorf("%s and %s: %v", first, second, err)
	}
	if got, err := states.Answered(first, who); err != nil || got != id1 {
		t.Errorf("%s, %v", got, err)
	}
	for name, other := range others() {
		if _, err := states.Answered(first, other); !errors.Is(err, approval.ErrState) {
			t.Errorf("another %s answers: %v", name, err)
		}
	}
	own := prefixOf(first)
	for _, bad := range []string{"", own, own + "1", first + "A", first[:len(first)-1], strings.TrimPrefix(first, own), own + strings.Repeat("A", 1<<20)} {
		if _, err := states.Answered(bad, who); !errors.Is(err, approval.ErrState) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
	if _, err := states.Ask("1", who); err == nil {
		t.Error("asked for no approval")
	}
	// An upstream has ids of its own, and may be a gateway too.
	theirs, err := approval.NewStates(sealer(t), "https://other.example.com", nil).Ask(id1, who)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{`"` + first + `"`: true, `"` + own + `1"`: true, `"` + theirs + `"`: false, `"gw-1"`: false, `"x` + first + `"`: false, `"\u0067` + first[1:] + `"`: true, `"\\u0067` + first[1:] + `"`: false, "7": false, "null": false, "": false} {
		if got := states.Asked([]byte(id)); got != want {
			t.Errorf("the gateway has asked %s: %v", id, got)
		}
	}
}

// prefixOf returns the beginning of the ids of a gateway's questions.
func prefixOf(ask string) string { return ask[:len("gw-012345678901-")] }

// statePrefixOf returns the beginning of a gateway's states.
func statePrefixOf(state string) string { return state[:len("dw1.012345678901.")] }

// TestUnwrap checks that the gateway's members are removed, and not a byte of the rest changes.
func TestUnwrap(t *testing.T) {
	form := approval.State{Mode: approval.ModeForm}
	proof := approval.State{Mode: approval.ModeProof}
	upstream := approval.State{Mode: approval.ModeProof, HasUpstream: true, Upstream: `a"b<` + "\n"}
	for _, tc := range []struct {
		name, body string
		state      approval.State
		want       string
	}{
		{"alone", `{"jsonrpc":"2.0", "id":1,"params":{"name":"x","arguments":{"n":1.00 },"inputResponses":{"durward_approval":{"action":"accept"}},"requestState":"dw1.x"},"method":"tools/call"}`, form,
			`{"jsonrpc":"2.0","id":1,"params":{"name":"x","arguments":{"n":1.00 }},"method":"tools/call"}`},
		{"first, with blanks", `{"params" : { "requestState" : "dw1.x" , "inputResponses" : { "durward_approval":{}, "b" : 1e2 } , "name" : "x" } }`, form,
			`{"params" : {"inputResponses" : {"b" : 1e2},"name" : "x"}}`},
		{"nothing but ours", `{"params":{"requestState":"dw1.x"}}`, form, `{"params":{}}`},
		{"spelled with escapes", `{"params":{"request\u0053tate":"dw1.x","\u0069nputResponses":{"durward\u005fapproval":1,"c":2}}}`, form, `{"params":{"\u0069nputResponses":{"c":2}}}`},
		{"a proof's answers are the upstream's", `{"params":{"inputResponses":{"durward_approval":1},"requestState":"dw1.x"}}`, proof, `{"params":{"inputResponses":{"durward_approval":1}}}`},
		{"the upstream's state comes back", `{"params":{"requestState": "dw1.x","inputResponses":{"q":{"action":"accept"}}}}`, upstream,
			`{"params":{"requestState": "a\"b<\n","inputResponses":{"q":{"action":"accept"}}}}`},
		{"elsewhere they stay", `{"requestState":"1","params":{"arguments":{"requestState":"2","inputResponses":{}},"requestState":"dw1.x"}}`, form,
			`{"requestState":"1","params":{"arguments":{"requestState":"2","inputResponses":{}}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := approval.Unwrap([]byte(tc.body), tc.state)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if _, err := approval.Unwrap([]byte(`{"params":{"inputResponses":[]}}`), form); err == nil {
		t.Error("answers that are no object are forwarded")
	}
}

// TestWrap checks that the upstream's questions pass, and that its state goes into the gateway's.
func TestWrap(t *testing.T) {
	for _, tc := range []struct {
		name, message, id string
		state             string
		hasState, asks    bool
		want              string
	}{
		{"with a state", `{"jsonrpc":"2.0","id":"a","result":{"requestState": "s\u0031","inputRequests":{"q":{}},"resultType":"input_required"}}`, `"a"`, "s1", true, true,
			`{"jsonrpc":"2.0","id":"a","result":{"requestState": "dw1.new","inputRequests":{"q":{}},"resultType":"input_required"}}`},
		{"without", `{"id":7,"result":{"resultType":"input_required","inputRequests":{}}}`, `7`, "", false, true,
			`{"id":7,"result":{"resultType":"input_required","inputRequests":{},"requestState":"dw1.new"}}`},
		{"spelled with escapes", `{"id":7,"result":{"resultType":"input\u005frequired"}}`, `7`, "", false, true,
			`{"id":7,"result":{"resultType":"input\u005frequired","requestState":"dw1.new"}}`},
		{"an id that is spelled in another way", `{"id":"\u0061","result":{"resultType":"input_required","requestState":""}}`, `"a"`, "", true, true,
			`{"id":"\u0061","result":{"resultType":"input_required","requestState":"dw1.new"}}`},
		{"complete", `{"id":7,"result":{"resultType":"complete","content":"input_required"}}`, `7`, "", false, false, ""},
		{"of another request", `{"id":8,"result":{"resultType":"input_required"}}`, `7`, "", false, false, ""},
		{"an error", `{"id":7,"error":{"resultType":"input_required"}}`, `7`, "", false, false, ""},
		{"no JSON", `input_required`, `7`, "", false, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state, hasState, asks := approval.Asks([]byte(tc.message), []byte(tc.id))
			if state != tc.state || hasState != tc.hasState || asks != tc.asks {
				t.Fatalf("%q, %v, %v", state, hasState, asks)
			}
			if !asks {
				return
			}
			got, err := approval.Wrap([]byte(tc.message), "dw1.new")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestReadRetry(t *testing.T) {
	for _, tc := range []struct {
		params string
		want   approval.Retry
	}{
		{`{}`, approval.Retry{}},
		{`{"requestState":"","inputResponses":{"durward_approval":{"action":"accept"},"x":{"action":"decline"}}}`, approval.Retry{HasState: true, Answer: approval.Yes, Others: true}},
		{`{"inputResponses":{"x":{"action":"decline"},"durward_approval":{"action":"accept"}}}`, approval.Retry{Answer: approval.Yes, Others: true}},
		{`{"requestState":"s","inputResponses":{"x":{"action":"accept"}}}`, approval.Retry{HasState: true, State: "s", Others: true}},
		{`{"inputResponses":{"durward_approval":{"action":true}}}`, approval.Retry{Answer: approval.Unable}},
		{`{"inputResponses":{"durward_approval":{"action":"cancel"}}}`, approval.Retry{Answer: approval.No}},
		{`{"inputResponses":{"durward_approval":{}}}`, approval.Retry{Answer: approval.Unable}},
		{`{"inputResponses":{"durward_approval":{"error":{"code":-32601}}}}`, approval.Retry{Answer: approval.Unable}},
		{`{"inputResponses":[1],"durward_approval":{"action":"accept"}}`, approval.Retry{Others: true}},
		{`{"inputResponses":{"durward_connect":{"action":"accept"}}}`, approval.Retry{}},
	} {
		got, err := approval.ReadRetry([]byte(tc.params))
		if err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v", tc.params, got, err)
		}
	}
	if got, err := approval.ReadRetry(nil); err != nil || got != (approval.Retry{}) {
		t.Errorf("%+v, %v", got, err)
	}
	var refused *jsonrpc.Error
	if _, err := approval.ReadRetry([]byte(`{"requestState":7}`)); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// FuzzOpenState checks that only sealed texts open, and that no text makes Open panic.
func FuzzOpenState(f *testing.F) {
	states := approval.NewStates(sealer(f), home, nil)
	good, err := states.Seal(approval.State{Mode: approval.ModeForm, ApprovalID: id1, ExpiresAt: time.Now().Add(time.Hour)}, who)
	if err != nil {
		f.Fatal(err)
	}
	ask, err := states.Ask(id1, who)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{good, ask, statePrefixOf(good), prefixOf(ask), statePrefixOf(good) + strings.TrimPrefix(ask, prefixOf(ask)), prefixOf(ask) + good[len(statePrefixOf(good)):], ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := states.Open(text, who); (err == nil) != (text == good) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := states.Answered(text, who); (err == nil) != (text == ask) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// FuzzUnwrap checks that the result differs from the message only in the gateway's two members.
func FuzzUnwrap(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1.0]},"inputResponses":{"durward_approval":{},"b":{}},"requestState":"s"}}`,
		`{"params":{ "requestState":"s" , "name":"x"}}`, `{}`, `[]`, `{"params":null}`,
	} {
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, hasUpstream bool) {
		before, err := strictjson.Parse(body, strictjson.Limits{})
		if err != nil {
			return
		}
		out, err := approval.Unwrap(body, approval.State{Mode: approval.ModeForm, HasUpstream: hasUpstream, Upstream: "u"})
		if err != nil {
			return
		}
		after, err := strictjson.Parse(out, strictjson.Limits{MaxBytes: len(out) + 10})
		if err != nil {
			t.Fatalf("%s became %s: %v", body, out, err)
		}
		for _, m := range before.Members() {
			got, ok := after.Get(m.Name)
			if !ok || m.Name != "params" && !bytes.Equal(got.Raw(), m.Value.Raw()) {
				t.Errorf("%s lost %q: %s", body, m.Name, out)
			}
		}
		params, _ := before.Get("params")
		left, _ := after.Get("params")
		for _, m := range params.Members() {
			got, ok := left.Get(m.Name)
			switch m.Name {
			case "requestState":
				if ok != hasUpstream || ok && got.Str() != "u" {
					t.Errorf("%s: the state is %s", body, out)
				}
			case "inputResponses":
				if _, ours := got.Get(approval.Key); ours || ok && got.Len() == 0 {
					t.Errorf("%s: an answer is left in %s", body, out)
				}
			default:
				if !ok || !bytes.Equal(got.Raw(), m.Value.Raw()) {
					t.Errorf("%s lost %q: %s", body, m.Name, out)
				}
			}
		}
	})
}

// away is a Sealer whose key cannot be looked up.
type away struct{ *seal.TokenSealer }

func (away) Open(string, []byte) ([]byte, error) { return nil, storage.ErrUnavailable }

// TestKeyLookupFails checks that a state that cannot be opened at the moment is not refused, because it may be good.
func TestKeyLookupFails(t *testing.T) {
	states := approval.NewStates(away{sealer(t)}, home, nil)
	state, err := states.Seal(approval.State{Mode: approval.ModeForm, ApprovalID: id1}, who)
	if err != nil {
		t.Fatal(err)
	}
	ask, err := states.Ask(id1, who)
	if err != nil {
		t.Fatal(err)
	}
	_, opened := states.Open(state, who)
	_, answered := states.Answered(ask, who)
	for _, err := range []error{opened, answered} {
		if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, approval.ErrState) {
			t.Error(err)
		}
	}
}
