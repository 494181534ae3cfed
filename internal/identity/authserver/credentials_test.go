package authserver

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// key makes tags with HMAC-SHA-256 under itself.
type key string

func (k key) AppendMAC(to, message []byte) []byte {
	h := hmac.New(sha256.New, []byte(k))
	h.Write(message)
	return h.Sum(to)
}

func (k key) CheckMAC(message, tag []byte) bool { return hmac.Equal(k.AppendMAC(nil, message), tag) }

// TestCredentials checks that a credential gives back its handle, and that no other text gives any.
func TestCredentials(t *testing.T) {
	c, other := NewCredentials(key("a")), NewCredentials(key("b"))
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringN(0, 100, 400)
		h := Handle{id.Draw(t, "organization"), id.Draw(t, "login"), rapid.IntRange(0, 1<<31).Draw(t, "generation")}
		code, refresh := c.Code(h), c.Refresh(h)
		if got, ok := c.OpenCode(code); !ok || got != h {
			t.Fatalf("code: %+v %v", got, ok)
		}
		if got, ok := c.OpenRefresh(refresh); !ok || got != h {
			t.Fatalf("refresh token: %+v %v", got, ok)
		}
		at := rapid.IntRange(0, len(refresh)-1).Draw(t, "place")
		changed := []byte(refresh)
		changed[at] ^= rapid.Byte().Filter(func(b byte) bool { return b != 0 }).Draw(t, "change")
		for _, text := range []string{code, codePrefix + strings.TrimPrefix(refresh, refreshPrefix), string(changed), refresh[:at], refresh + "A", refresh + "\n", "x" + refresh, other.Refresh(h)} {
			if got, ok := c.OpenRefresh(text); ok {
				t.Fatalf("%q is taken: %+v", text, got)
			}
		}
		if _, ok := c.OpenCode(refresh); ok {
			t.Fatal("a refresh token is taken for a code")
		}
	})
}

// TestCredentialLengths checks that lengths which lead out of a credential are refused, although its tag is right.
func TestCredentialLengths(t *testing.T) {
	c := NewCredentials(key("a"))
	for name, body := range map[string][]byte{
		"nothing":               {},
		"one text":              {1, 'o'},
		"a text that is cut":    {9, 'o'},
		"no generation":         {1, 'o', 1, 'l'},
		"a length without end":  bytes.Repeat([]byte{0xff}, 11),
		"the longest length":    append(bytes.Repeat([]byte{0xff}, 9), 1),
		"too many generations":  {1, 'o', 1, 'l', 0x81, 0x80, 0x80, 0x80, 0x08},
		"something behind them": {1, 'o', 1, 'l', 0, 0},
	} {
		text := refreshPrefix + base64.RawURLEncoding.EncodeToString(key("a").AppendMAC(body, append([]byte(refreshPrefix), body...)))
		if h, ok := c.OpenRefresh(text); ok {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func FuzzCredentials(f *testing.F) {
	c := NewCredentials(key("a"))
	f.Add(c.Refresh(Handle{"o", "l", 1}))
	f.Add(c.Code(Handle{"o", "l", 0}))
	f.Fuzz(func(t *testing.T, text string) {
		if h, ok := c.OpenRefresh(text); ok && c.Refresh(h) != text {
			t.Errorf("%q has another spelling: %+v", text, h)
		}
	})
}
