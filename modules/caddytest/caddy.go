// Package caddytest runs configurations in the test's own process, so that tests of modules meet them as Caddy does:
// loaded, reloaded, cleaned up. There is one Caddy per process: tests that use it must not run in parallel.
package caddytest

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Object is a JSON object.
type Object = map[string]any

// Config returns a configuration with the app `durward` and one HTTP server that listens on address and runs the
// handlers in a single route.
func Config(durward Object, address string, handlers ...any) []byte {
	return Servers(durward, Object{"srv": Server(address, nil, handlers...)})
}

// Server returns an HTTP server without TLS with one route. hosts may be nil.
func Server(address string, hosts []string, handlers ...any) Object {
	route := Object{"handle": handlers}
	if hosts != nil {
		route["match"] = []any{Object{"host": hosts}}
	}
	return Object{"listen": []string{address}, "automatic_https": Object{"disable": true}, "routes": []any{route}}
}

// Servers returns a configuration with the app `durward`, unless it is nil, and HTTP servers by name.
func Servers(durward, servers Object) []byte {
	// Nothing is stored in Caddy's own storage, which is in the home directory.
	apps := Object{"http": Object{"servers": servers}, "tls": Object{"disable_storage_check": true, "disable_storage_clean": true}}
	if durward != nil {
		apps["durward"] = durward
	}
	config, err := json.Marshal(Object{
		"admin":   Object{"disabled": true, "config": Object{"persist": false}},
		"logging": Object{"logs": Object{"default": Object{"writer": Object{"output": "discard"}, "level": "DEBUG"}}},
		"apps":    apps,
	})
	if err != nil {
		panic(err)
	}
	return config
}

// Named returns the JSON of a handler without settings.
func Named(handler string) Object { return Object{"handler": handler} }

// Load runs a configuration in place of the one that is running, which stays when it fails. Caddy is stopped at the end
// of the test.
func Load(t testing.TB, config []byte) error {
	t.Helper()
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return caddy.Load(config, true)
}

// Validate provisions a configuration without running it.
func Validate(config []byte) error {
	var c caddy.Config
	if err := caddy.StrictUnmarshalJSON(config, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

// Address returns a loopback address with a port that was free a moment ago, and that no outgoing connection takes.
func Address(t testing.TB) string {
	t.Helper()
	listener, err := loopback.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// functions holds the handlers that Handle made, by name.
var functions sync.Map

// Handler runs a function of a test as a handler of a route.
type Handler struct {
	// The name under which the function was given to Handle.
	Name string `json:"name,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.caddytest", New: func() caddy.Module { return new(Handler) }}
}

// Handle returns the JSON of a handler that runs f.
func Handle(t testing.TB, f func(http.ResponseWriter, *http.Request)) Object {
	t.Helper()
	functions.Store(t.Name(), f)
	t.Cleanup(func() { functions.Delete(t.Name()) })
	return Object{"handler": "caddytest", "name": t.Name()}
}

// ServeHTTP runs the function.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	f, ok := functions.Load(h.Name)
	if !ok {
		return caddyhttp.Error(http.StatusNotImplemented, nil)
	}
	f.(func(http.ResponseWriter, *http.Request))(w, r)
	return nil
}

var _ caddyhttp.MiddlewareHandler = Handler{}
