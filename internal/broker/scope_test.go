package broker

import (
	"net/url"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestW05NextConnectAsksForMore: what the upstream missed is asked for together with what the user had granted, until they
// have answered.
func TestW05NextConnectAsksForMore(t *testing.T) {
	b := setup(t)
	asked := func(r ConnectResult) string {
		t.Helper()
		u, err := url.Parse(*r.AuthURL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("scope")
	}
	if err := b.Want(t.Context(), b.key, "write"); err != nil {
		t.Errorf("of somebody who is not connected: %v", err)
	}
	first := asked(b.begin())
	b.connect()
	version := b.connection().Version
	for _, want := range []string{"files:write", "files:write", "", "files:write", "\"none\"", strings.Repeat("x", 9<<10)} {
		if err := b.Want(t.Context(), b.key, want); err != nil {
			t.Fatalf("%q: %v", want, err)
		}
	}
	c := b.connection()
	if c.WantedScope != "files:write" || c.Status != storage.ConnectionConnected || c.Version == version {
		t.Errorf("stored %+v", c)
	}
	if got := widened(storage.Connection{Scope: "read files:write"}, "read files:write more"); got != "more" {
		t.Errorf("beside what is granted %q is wanted", got)
	}
	b.use(b.Broker)
	again := b.begin()
	if got := asked(again); got != first+" files:write" {
		t.Errorf("asked for %q, at first for %q", got, first)
	}
	if r, err := b.Callback(t.Context(), b.provider.approve(*again.AuthURL), ownBrowser); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := b.connection().WantedScope; got != "" {
		t.Errorf("after the user's answer %q is still asked for", got)
	}
}
