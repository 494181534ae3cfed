package session

import (
	"errors"
	"strings"
	"testing"
)

// TestM11Cursors checks that a cursor is valid for the caller, server and list for which it was made, and reveals
// nothing.
func TestM11Cursors(t *testing.T) {
	c := New(newGCM(t), fixed)
	for _, cursor := range []string{"", "secret tool", "ü\n", strings.Repeat("~", MaxCursor)} {
		sealed, err := c.SealCursor(cursor, "tools/list", alice)
		if err != nil {
			t.Fatal(err)
		}
		if len(sealed) > maxSealedCursor || cursor != "" && strings.Contains(sealed, cursor) {
			t.Errorf("M11 %d characters: %s", len(sealed), sealed)
		}
		if got, err := c.OpenCursor(sealed, "tools/list", alice); err != nil || got != cursor {
			t.Errorf("%q, %v", got, err)
		}
	}
	if _, err := c.SealCursor(strings.Repeat("~", MaxCursor+1), "tools/list", alice); !errors.Is(err, ErrUpstreamCursor) {
		t.Error(err)
	}
	sealed, _ := c.SealCursor("secret", "tools/list", alice)
	endpoint, _ := c.SealEndpoint(theirs, alice)
	with := func(change func(*Binding)) Binding { b := alice; change(&b); return b }
	for _, tc := range []struct {
		name, cursor, method string
		b                    Binding
	}{
		{"another user", sealed, "tools/list", with(func(b *Binding) { b.User = "bob" })},
		{"another agent", sealed, "tools/list", with(func(b *Binding) { b.Agent = "other" })},
		{"another server", sealed, "tools/list", with(func(b *Binding) { b.Server = "demo2" })},
		{"another organization", sealed, "tools/list", with(func(b *Binding) { b.Organization = "rival" })},
		{"another list", sealed, "prompts/list", alice},
		{"an endpoint", endpoint, "tools/list", alice},
		{"not sealed", "c2VjcmV0", "tools/list", alice},
		{"cut", sealed[:len(sealed)-1], "tools/list", alice},
		{"empty", "", "tools/list", alice},
		{"too long", strings.Repeat("A", maxSealedCursor+1), "tools/list", alice},
	} {
		if got, err := c.OpenCursor(tc.cursor, tc.method, tc.b); !errors.Is(err, ErrUnknownCursor) {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}
