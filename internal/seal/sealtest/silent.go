// Package sealtest proves that types do not show their secrets.
package sealtest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// Canary is the secret to put into values for Silent, at least as a part.
const Canary = "canary-0123456789-abcdefghijklmn"

// Silent fails when a value shows Canary in any way in which a program prints, logs or encodes values: alone, behind
// a pointer, and as an unexported member, on which fmt calls no method.
func Silent(t *testing.T, values ...any) {
	t.Helper()
	silent(t, true, values)
}

// SilentOutside checks types like Silent, but not as unexported members. It is for types that hide their contents
// only by methods, because the contents are written on the hot path: fmt does not call the methods of an unexported
// member.
func SilentOutside(t *testing.T, values ...any) {
	t.Helper()
	silent(t, false, values)
}

func silent(t *testing.T, within bool, values []any) {
	t.Helper()
	for _, value := range values {
		for way, shown := range shows(value, within) {
			for _, form := range forms() {
				if strings.Contains(shown, form) {
					t.Errorf("%T shows its secret with %s: %s", value, way, shown)
				}
			}
		}
	}
}

type holder struct{ held any }

type nested struct {
	inner holder
	more  []any
	named map[string]any
}

func shows(value any, within bool) map[string]string {
	places := map[string]any{
		"itself": value, "a list": []any{value}, "a map": map[string]any{"x": value}, "an error": fmt.Errorf("failing with %v", value),
	}
	if within {
		places["within"] = nested{holder{value}, []any{value}, map[string]any{"x": value}}
	}
	all := map[string]string{}
	for where, v := range places {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			all[verb+" of "+where] = fmt.Sprintf(verb, v)
		}
		if text, err := json.Marshal(v); err == nil {
			all["json of "+where] = string(text)
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "value", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "value", v)
		all["slog of "+where] = log.String()
	}
	return all
}

func forms() []string {
	raw := []byte(Canary)
	decimal := strings.Trim(fmt.Sprint(raw), "[]")
	return []string{
		Canary, hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), base64.RawStdEncoding.EncodeToString(raw),
		base64.RawURLEncoding.EncodeToString(raw), decimal, strings.ReplaceAll(decimal, " ", ","), "0x63, 0x61, 0x6e, 0x61",
	}
}
