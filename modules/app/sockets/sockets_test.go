package sockets

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/go-cmp/cmp"
)

// TestShareSockets checks that plain addresses are shared, once; those that say how to listen, or that the system
// chooses, are not.
func TestShareSockets(t *testing.T) {
	server := &caddyhttp.Server{Listen: []string{
		":443", "127.0.0.1:8080", "[::1]:8080-8082", "tcp/:80", "tcp4/:81", "udp/:82", "unix//run/gate.sock|0222", "fd/3", "127.0.0.1:0",
	}}
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.WithValue(t.Context(), caddyhttp.ServerCtxKey, server)})
	defer cancel()
	var l Listening
	for range 2 { // each handler of a server asks
		l.Share(ctx)
	}
	want := []string{
		"durward/:443", "durward/127.0.0.1:8080", "durward/[::1]:8080-8082", "durward/:80", "tcp4/:81", "udp/:82",
		"unix//run/gate.sock|0222", "fd/3", "127.0.0.1:0",
	}
	if diff := cmp.Diff(want, server.Listen); diff != "" {
		t.Error(diff)
	}
	for _, listen := range server.Listen {
		if _, err := caddy.ParseNetworkAddress(listen); err != nil {
			t.Error(err)
		}
	}
	(&Listening{}).Share(caddy.Context{Context: t.Context()}) // a handler outside of every server
}

// TestPartWith checks that clients whose connections cannot be passed on leave once the next configuration serves; for
// HTTP/2 the header would end the whole connection.
func TestPartWith(t *testing.T) {
	for _, tc := range []struct {
		name    string
		leaving bool
		over    *tls.ConnectionState
		major   int
		want    string
	}{
		{"HTTP/1.1 over TLS", true, &tls.ConnectionState{}, 1, "close"},
		{"while nothing follows", false, &tls.ConnectionState{}, 1, ""},
		{"without TLS", true, nil, 1, ""},
		{"HTTP/2", true, &tls.ConnectionState{}, 2, ""},
	} {
		l := new(Listening)
		if tc.leaving {
			l.HandOver(t.Context())
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp/x", nil)
		r.TLS, r.ProtoMajor = tc.over, tc.major
		w := httptest.NewRecorder()
		l.PartWith(w, r)
		if got := w.Header().Get("Connection"); got != tc.want {
			t.Errorf("%s: Connection is %q instead of %q", tc.name, got, tc.want)
		}
	}
}
