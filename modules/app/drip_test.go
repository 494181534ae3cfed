package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/caddytest"
)

// TestDripsEndWithTheirDeadline checks that a body that does not come keeps the configuration open that judged its
// caller, but no longer than bodies have.
func TestDripsEndWithTheirDeadline(t *testing.T) {
	balanced(t)
	issuer, address, key, dir := caddytest.NewIssuer(t), caddytest.Address(t), keyFile(t), t.TempDir()
	token := issuer.Token("https://gate.example.com", nil)
	arrived := make(chan *app.Core)
	read := caddytest.Handle(t, func(w http.ResponseWriter, r *http.Request) {
		call, _ := app.CallOf(r)
		arrived <- call.Core
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error("the body came")
		}
		w.WriteHeader(http.StatusRequestTimeout)
	})
	server := caddytest.Server(address, nil, auth, read)
	server["read_idle_timeout"], server["read_min_rate"] = "2s", 16<<10
	load := func(i int) {
		t.Helper()
		config := with(production(dir, key, issuer.URL), object{"sizes": object{"api": 1000 + i}})
		if err := caddytest.Load(t, caddytest.Servers(config, object{"srv": server})); err != nil {
			t.Fatal(err)
		}
	}
	cores := make(map[*app.Core]bool)
	for i := range 3 {
		load(i)
		for range 5 {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := fmt.Fprintf(connection, "POST / HTTP/1.1\r\nHost: gate.example.com\r\nAuthorization: Bearer %s\r\nContent-Length: 1000\r\n\r\nx", token); err != nil {
				t.Fatal(err)
			}
			select {
			case core := <-arrived:
				cores[core] = true
			case <-time.After(bound):
				t.Fatal("the request did not arrive")
			}
		}
	}
	load(3)
	if len(cores) != 3 {
		t.Errorf("%d configurations served", len(cores))
	}
	deadline := time.After(bound)
	for core := range cores {
		for !app.Closed(core) {
			select {
			case <-deadline:
				t.Fatal("a configuration is still open")
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}
