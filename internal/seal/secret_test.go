package seal

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// canary is looked for in every output, in each spelling that a printer could choose.
const canary = "s3cr3t-c4nary-9f2d\"<&>"

func checkNoCanary(t *testing.T, where, out string) {
	t.Helper()
	quoted, err := json.Marshal(canary)
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{
		canary, "c4nary", hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary))),
		base64.StdEncoding.EncodeToString([]byte(canary)), strings.Trim(string(quoted), `"`), fmt.Sprint([]byte(canary)),
	} {
		if strings.Contains(out, form) {
			t.Errorf("%s shows the secret: %s", where, out)
		}
	}
}

func TestSecretNeverShows(t *testing.T) {
	s := NewSecret(canary)
	type public struct {
		Name string
		S    Secret
		P    *Secret
	}
	type private struct {
		name string
		s    Secret
		p    *Secret
		m    map[string]Secret
		l    []Secret
	}
	values := map[string]any{
		"secret":        s,
		"pointer":       &s,
		"exported":      public{"n", s, &s},
		"exported ptr":  &public{"n", s, &s},
		"unexported":    private{"n", s, &s, map[string]Secret{"k": s}, []Secret{s}},
		"slice":         []Secret{s},
		"map":           map[string]Secret{"k": s},
		"wrapped error": fmt.Errorf("using %v: %w", s, errors.New("refused")),
	}
	for name, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%p", "%t", "%10s", "%U", "%b"} {
			checkNoCanary(t, name+" "+verb, fmt.Sprintf(verb, v))
		}
		if b, err := json.Marshal(v); err == nil {
			checkNoCanary(t, name+" json", string(b))
		}
		for _, h := range []func(*bytes.Buffer) slog.Handler{
			func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
			func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
		} {
			var b bytes.Buffer
			slog.New(h(&b)).Info("using", "credential", v, slog.Group("g", "inner", v))
			checkNoCanary(t, name+" slog", b.String())
		}
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(public{S: s}); err == nil {
		checkNoCanary(t, "gob", b.String())
	}
	if x, err := xml.Marshal(public{S: s}); err == nil {
		checkNoCanary(t, "xml", string(x))
	}
	text, err := s.MarshalText()
	if err != nil || string(text) != "REDACTED" {
		t.Errorf("MarshalText = %s, %v", text, err)
	}
}

func TestSecret(t *testing.T) {
	if got := NewSecret("a").Reveal(); got != "a" {
		t.Errorf("Reveal = %q", got)
	}
	if got := (Secret{}).Reveal(); got != "" {
		t.Errorf("Reveal of zero = %q", got)
	}
	if got := fmt.Sprintf("%v %s %x", NewSecret("a"), NewSecret("a"), NewSecret("a")); got != "REDACTED REDACTED REDACTED" {
		t.Errorf("printed: %s", got)
	}
	if !(Secret{}).Empty() || !NewSecret("").Empty() || NewSecret("a").Empty() {
		t.Error("Empty is wrong")
	}
	if !NewSecret("a").Equal(NewSecret("a")) || NewSecret("a").Equal(NewSecret("ab")) || !NewSecret("").Equal(Secret{}) {
		t.Error("Equal is wrong")
	}
	if got, err := json.Marshal(struct{ S Secret }{NewSecret("a")}); err != nil || string(got) != `{"S":"REDACTED"}` {
		t.Errorf("json = %s, %v", got, err)
	}
}
