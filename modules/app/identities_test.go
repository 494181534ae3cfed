package app

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestAnotherOrganizationIsNoticed checks that an operator learns of a claim that makes organizations (W25).
func TestAnotherOrganizationIsNoticed(t *testing.T) {
	k := newKeyring(t)
	var log bytes.Buffer
	k.core.Log = slog.New(slog.NewTextHandler(&log, nil))
	for step, want := range []struct{ organization, level string }{{"acme", "INFO"}, {"acme", ""}, {"client-7", "WARN"}, {"acme", ""}, {"client-7", ""}, {"client-8", "WARN"}} {
		log.Reset()
		if _, err := k.show(k.issuer.Sign(map[string]any{"org_id": want.organization, "sub": "user-" + string(rune('a'+step))})); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); want.level == "" && text != "" || want.level != "" && (!strings.Contains(text, "level="+want.level) || !strings.Contains(text, "slug="+want.organization)) {
			t.Errorf("step %d: %s", step, text)
		}
	}
}
