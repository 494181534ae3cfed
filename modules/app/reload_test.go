package app_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/caddytest"
	"github.com/durward-gateway/durward/modules/caddytest/probe"
	"github.com/durward-gateway/durward/storage"
)

// bound is the longest time that a test waits for an event that must come at once.
const bound = 30 * time.Second

// balanced checks at the end of a test that nothing is held any more.
func balanced(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		stop(t)
		if n := app.Pooled(); n != 0 {
			t.Errorf("%d resources are still held", n)
		}
	})
}

// get asks the gateway under its public name and returns status and body.
func get(t *testing.T, address, path, token string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "gate.example.com"
	r.Close = true
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(r)
	// Caddy closes the old configuration's socket with what still waits in it, and its server closes what it has accepted
	// and not read yet. ctx bounds the tries.
	for errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
		response, err = http.DefaultClient.Do(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	balanced(t)
	dir, key := t.TempDir(), keyFile(t)
	notAKey := filepath.Join(dir, "not-a-key")
	if err := os.WriteFile(notAKey, []byte("canary\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries := func(records ...object) object { return object{"directory": object{"entries": records}} }
	oidc := func(more object) object {
		return object{"identity": []any{with(object{"kind": "oidc", "issuer": "https://id.example.com"}, more)}}
	}
	for _, test := range []struct {
		name   string
		change object
		want   string
	}{
		{"no store", object{"store": nil}, "add `store sqlite PATH`"},
		{"a store that is not linked", object{"store": object{"driver": "oracle"}}, "durward.stores.oracle"},
		{"a store without a path", object{"store": object{"driver": "sqlite"}}, "no path is given"},
		{"a store at a path from an unset variable", object{"store": object{"driver": "sqlite", "path": "{env.DURWARD_TEST_UNSET}/x.db"}}, "resolving path"},
		{"a store in a place that is a file", object{"store": object{"driver": "sqlite", "path": filepath.Join(notAKey, "x.db")}}, "opening store"},
		{"no identity", object{"identity": nil}, "add `identity oidc ISSUER`"},
		{"the same issuer twice", object{"identity": []any{object{"kind": "oidc", "issuer": "https://id.example.com"}, object{"kind": "oidc", "issuer": "https://id.example.com"}}}, "configured twice"},
		{"no issuer", oidc(object{"issuer": nil}), "is not an issuer such as"},
		{"a separator of claims that is a letter", oidc(object{"claim_separator": "a"}), "claim_separator"},
		{"an issuer without a host", oidc(object{"issuer": "https://"}), "is not an issuer such as"},
		{"an issuer with a query", oidc(object{"issuer": "https://id.example.com?tenant=1"}), "has a query"},
		{"an issuer with a fragment", oidc(object{"issuer": "https://id.example.com#x"}), "fragment"},
		{"an issuer with a user", oidc(object{"issuer": "https://me@id.example.com"}), "has user information"},
		{"an issuer over plain http", oidc(object{"issuer": "http://192.0.2.7"}), "http://192.0.2.7"},
		{"any audience and one", oidc(object{"audience_any": true, "audience": []string{"x"}}), "stands alone"},
		{"any audience and only one", oidc(object{"audience_any": true, "aud_single": true}), "stands alone"},
		{"J04 algorithm none", oidc(object{"algorithms": []string{"none"}}), "none"},
		{"J05 a symmetric algorithm", oidc(object{"algorithms": []string{"HS256"}}), "HS256"},
		{"a negative leeway", oidc(object{"leeway": "-1s"}), "leeway"},
		{"a negative lifetime", oidc(object{"max_lifetime": "-1s"}), "max_lifetime"},
		{"a negative age", oidc(object{"max_token_age": "-1s"}), "max_token_age"},
		{"an unknown claim", oidc(object{"claim": object{"tenant": []string{"x"}}}), "unrecognized claim"},
		{"an unknown member of an identity", oidc(object{"audiences": []string{"x"}}), `unknown field "audiences"`},
		{"an unknown member of the app", object{"public_ulr": "https://x"}, `unknown field "public_ulr"`},
		{"no master key", object{"master_key": nil}, "openssl rand -base64 32"},
		{"a literal master key", object{"master_key": []string{"canary"}}, "must be a reference"},
		{"a master key in a file that is not there", object{"master_key": []string{"{file./nonexistent/key}"}}, "{file./nonexistent/key} does not resolve"},
		{"a master key in a variable that is not set", object{"master_key": []string{"{env.DURWARD_TEST_UNSET}"}}, "{env.DURWARD_TEST_UNSET} does not resolve"},
		{"a master key that is none", object{"master_key": []string{"{file." + notAKey + "}"}}, "reading master_key {file." + notAKey + "}"},
		{"an egress range that is none", object{"egress": object{"allow": []string{"intranet"}}}, "egress allow"},
		{"an origin that is none", object{"origins": []string{"null"}}, `origins: "null"`},
		{"a return address that is none", object{"return_url": []string{"app.example.com"}}, "app.example.com"},
		{"a negative size", object{"sizes": object{"mcp": -1}}, "sizes: mcp"},
		{"a size over the bound", object{"sizes": object{"event": 1 << 40}}, "sizes: event"},
		{"a directory entry without a name", entries(object{"url": "https://a.example.com/mcp"}), "directory entry"},
		{"a directory entry that may not be connected to", entries(object{"name": "Local", "url": "http://10.0.0.1/mcp"}), `directory entry "Local"`},
		{"two directory entries with one slug", entries(object{"name": "A", "url": "https://a.example.com/mcp"}, object{"name": "a", "url": "https://b.example.com/mcp"}), "taken by another entry"},
		{"a directory that is not a reference", object{"directory": object{"files": []string{"[]"}}}, "is not a reference"},
		{"a directory in a file that is not there", object{"directory": object{"files": []string{"{file./nonexistent/directory.json}"}}}, "/nonexistent/directory.json"},
		{"a directory file that is not JSON", object{"directory": object{"files": []string{"{file." + notAKey + "}"}}}, notAKey},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := with(production(dir, key, "https://id.example.com"), test.change)
			err := caddytest.Validate(caddytest.Config(config, "127.0.0.1:0", auth))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error shows a secret: %v", err)
			}
			// Whichever app is loaded first: a handler that asks for an app with a fault must not hide the fault.
			if err != nil && strings.Contains(err.Error(), "app is not configured") {
				t.Error(err)
			}
			if n := app.Pooled(); n != 0 {
				t.Errorf("%d resources are still held", n)
			}
		})
	}
	t.Run("a handler without the app", func(t *testing.T) {
		err := caddytest.Validate(caddytest.Servers(nil, object{"a": caddytest.Server("127.0.0.1:0", nil, auth)}))
		if err == nil || !strings.Contains(err.Error(), "the durward app is not configured") {
			t.Error(err)
		}
	})
	t.Run("an unknown member of a handler", func(t *testing.T) {
		err := caddytest.Validate(caddytest.Config(production(dir, key, "https://id.example.com"), "127.0.0.1:0", object{"handler": "durward_auth", "off": true}))
		if err == nil || !strings.Contains(err.Error(), `unknown field "off"`) {
			t.Error(err)
		}
	})
	t.Run("and the same without a mistake", func(t *testing.T) {
		if err := caddytest.Validate(caddytest.Config(production(dir, key, "https://id.example.com"), "127.0.0.1:0", auth)); err != nil {
			t.Error(err)
		}
	})
}

// TestReloadThatFailsLeavesTheGatewayServing checks that a configuration that is refused, early or late, changes
// nothing.
func TestReloadThatFailsLeavesTheGatewayServing(t *testing.T) {
	balanced(t)
	issuer, dir, address := caddytest.NewIssuer(t), t.TempDir(), caddytest.Address(t)
	good := production(dir, keyFile(t), issuer.URL)
	whoami := caddytest.Handle(t, func(w http.ResponseWriter, r *http.Request) {
		call, _ := app.CallOf(r)
		entries, err := call.Core.Store.DirectoryEntries(r.Context(), storage.DirectoryFilter{OrganizationID: call.Caller.OrganizationID, Search: "Only in the new", Page: storage.PageRequest{Number: 1, Limit: 10}})
		if err != nil || entries.Total != 0 {
			t.Errorf("directory of a configuration that never ran: %+v, %v", entries, err)
		}
		_, _ = io.WriteString(w, call.Caller.Email)
	})
	if err := caddytest.Load(t, caddytest.Config(good, address, auth, whoami)); err != nil {
		t.Fatal(err)
	}
	token := issuer.Token("https://gate.example.com", nil)
	serving := func() {
		t.Helper()
		if status, body := get(t, address, "/", token); status != http.StatusOK || body != "alice@example.test" {
			t.Fatalf("%d %s", status, body)
		}
	}
	serving()
	held := app.Pooled()
	entry := object{"directory": object{"entries": []any{object{"name": "Only in the new", "url": "https://new.example.com/mcp"}}}}
	for _, test := range []struct {
		name   string
		config []byte
		want   string
	}{
		{"another master key", caddytest.Config(with(good, object{"master_key": []string{keyFile(t)}}), address, auth, whoami), "master key"},
		{"a key that is gone", caddytest.Config(with(good, object{"master_key": []string{"{file./nonexistent/key}"}}), address, auth, whoami), "does not resolve"},
		{"a handler that does not exist, after ours", caddytest.Config(with(good, entry), address, auth, object{"handler": "nonexistent"}), "nonexistent"},
		{"an address that is not ours", caddytest.Servers(good, object{"a": caddytest.Server(address, nil, auth, whoami), "b": caddytest.Server("192.0.2.7:1", nil, whoami)}), "listen"},
		{"another store, and a handler that does not exist", caddytest.Config(production(t.TempDir(), keyFile(t), issuer.URL), address, auth, object{"handler": "nonexistent"}), "nonexistent"},
	} {
		for range 2 { // a second failure finds what the first one left
			if err := caddytest.Load(t, test.config); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("%s: error %v, want %q", test.name, err, test.want)
			}
			serving()
			if n := app.Pooled(); n != held {
				t.Errorf("%s: %d resources are held, were %d", test.name, n, held)
			}
		}
	}
	if err := caddytest.Validate(caddytest.Config(with(good, entry), address, auth, whoami)); err != nil {
		t.Fatal(err)
	}
	serving()
	if n := issuer.Fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// TestRequestThatComesTooLateForItsConfiguration checks that a request can be on its way into a configuration while
// that is cleaned up. The one that took its place answers; nobody is refused because of a reload.
func TestRequestThatComesTooLateForItsConfiguration(t *testing.T) {
	balanced(t)
	config := production(t.TempDir(), keyFile(t), "https://id.example.com")
	load := func() *app.App {
		t.Helper()
		if err := caddytest.Load(t, caddytest.Config(config, caddytest.Address(t), auth, probe.Handler)); err != nil {
			t.Fatal(err)
		}
		return probe.Found.App
	}
	former, present := load(), load()
	if former == present {
		t.Fatal("the app was not made anew")
	}
	running, unpin, ok := present.Pin()
	if !ok {
		t.Fatal("the running configuration has no core")
	}
	defer unpin()
	late, unpinLate, ok := former.Pin()
	if !ok || late != running {
		t.Fatalf("got %p, %v, want %p", late, ok, running)
	}
	unpinLate()
}

func TestReloadKeepsWhatDidNotChange(t *testing.T) {
	balanced(t)
	issuer, dir, address, key := caddytest.NewIssuer(t), t.TempDir(), caddytest.Address(t), keyFile(t)
	var stores []storage.Store
	look := caddytest.Handle(t, func(_ http.ResponseWriter, r *http.Request) {
		call, _ := app.CallOf(r)
		stores = append(stores, app.OpenedStore(call.Core))
	})
	metrics := object{"handler": "metrics"}
	token := issuer.Token("https://gate.example.com", nil)
	for i := range 3 {
		config := with(production(dir, key, issuer.URL), object{"sizes": object{"api": 1000 + i}})
		if err := caddytest.Load(t, caddytest.Servers(config, object{
			"a": caddytest.Server(address, nil, auth, look), "m": caddytest.Server(strings.Replace(address, "127.0.0.1", "127.0.0.2", 1), nil, metrics),
		})); err != nil {
			t.Fatal(err)
		}
		if status, body := get(t, address, "/", token); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	if stores[0] != stores[1] || stores[1] != stores[2] {
		t.Error("the store was opened anew")
	}
	if n := issuer.Fetches.Load(); n != 1 {
		t.Errorf("the keys were fetched %d times", n)
	}
	_, body := get(t, strings.Replace(address, "127.0.0.1", "127.0.0.2", 1), "/metrics", "")
	if !strings.Contains(body, `durward_authentications_total{result="ok"}`) {
		t.Errorf("no metrics of ours after reloads:\n%s", body)
	}
	if strings.Contains(body, `durward_authentications_total{result="ok"} 1`+"\n") {
		t.Error("counters began anew with a reload")
	}
}

// TestRequestKeepsItsStoreOpen checks that a reload that names another store does not take the old one from under a
// request.
func TestRequestKeepsItsStoreOpen(t *testing.T) {
	balanced(t)
	issuer, address, key := caddytest.NewIssuer(t), caddytest.Address(t), keyFile(t)
	token := issuer.Token("https://gate.example.com", nil)
	running, release := make(chan storage.Store), make(chan struct{})
	finish := sync.OnceFunc(func() { close(release) })
	defer finish() // Caddy waits for the request when it stops
	wait := caddytest.Handle(t, func(w http.ResponseWriter, r *http.Request) {
		call, _ := app.CallOf(r)
		if r.URL.Path == "/wait" {
			running <- call.Core.Store
			<-release
		}
		if err := call.Core.Store.Ping(r.Context()); err != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		_, _ = io.WriteString(w, call.Caller.Email)
	})
	if err := caddytest.Load(t, caddytest.Config(production(t.TempDir(), key, issuer.URL), address, auth, wait)); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string, 1)
	go func() {
		defer close(answered)
		_, body := get(t, address, "/wait", token)
		answered <- body
	}()
	var old storage.Store
	select {
	case old = <-running:
	case <-time.After(bound):
		t.Fatal("the request did not arrive")
	}
	if err := caddytest.Load(t, caddytest.Config(production(t.TempDir(), key, issuer.URL), address, auth, wait)); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, address, "/", token); status != http.StatusOK {
		t.Fatalf("after the reload: %d %s", status, body)
	}
	finish()
	if body := <-answered; body != "alice@example.test" {
		t.Errorf("the request that was running got %q", body)
	}
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	for old.Ping(t.Context()) == nil { // the handler's unpin runs after the answer is sent
		select {
		case <-deadline.C:
			t.Fatal("the old store is still open")
		default:
		}
	}
}

func TestDevelopmentMasterKeyLiesBesideTheStore(t *testing.T) {
	balanced(t)
	dir, address := t.TempDir(), caddytest.Address(t)
	config := caddytest.Config(development(dir), address, caddytest.Named("durward_dev"), auth)
	for range 2 {
		if err := caddytest.Load(t, config); err != nil {
			t.Fatal(err)
		}
		stop(t)
	}
	info, err := os.Stat(filepath.Join(dir, "master.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := os.Remove(filepath.Join(dir, "master.key")); err != nil {
		t.Fatal(err)
	}
	if err := caddytest.Load(t, config); err == nil || !strings.Contains(err.Error(), "master key") {
		t.Errorf("a new key for an old store: %v", err)
	}
}
