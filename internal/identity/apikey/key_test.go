package apikey

import (
	"crypto/sha256"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

// TestForm covers attack K06: the form of a key, and that no two are the same.
func TestForm(t *testing.T) {
	form := regexp.MustCompile(`^dw-[0-9A-Za-z]{49}$`)
	seen := make(map[string]bool)
	for range 1000 {
		key := New().Reveal()
		if !form.MatchString(key) || len(key) != Size || Check(key) != nil || seen[key] {
			t.Fatalf("%q", key)
		}
		seen[key] = true
	}
	key := New()
	if p := Prefix(key); len(p) != 8 || !strings.HasPrefix(key.Reveal(), p) || !strings.HasPrefix(p, Begin) {
		t.Error(p)
	}
	largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), randomBits), big.NewInt(1))
	if got := base62(largest, randomChars); len(got) != randomChars {
		t.Errorf("%d characters", len(got))
	}
	if got := base62(new(big.Int), randomChars); got != strings.Repeat("0", randomChars) {
		t.Error(got)
	}
}

// TestChecksum fixes the form: keys that were made must stay valid.
func TestChecksum(t *testing.T) {
	key := "dw-" + strings.Repeat("0", 42) + "1"
	if err := Check(key + checksum(key)); err != nil {
		t.Fatal(err)
	}
	if got := checksum(key); got != "17C5ta" {
		t.Errorf("checksum %s", got)
	}
}

func TestMalformed(t *testing.T) {
	key := New().Reveal()
	if Check(key) != nil {
		t.Fatal("a good key")
	}
	for i := range key {
		other := byte('x')
		if key[i] == other {
			other = 'y'
		}
		if Check(key[:i]+string(other)+key[i+1:]) == nil {
			t.Errorf("changed at %d", i)
		}
		if Check(key[:i]) == nil || i > 2 && Check(key[:i]+"-"+key[i+1:]) == nil || Check(key[:i]+"\x00"+key[i+1:]) == nil {
			t.Errorf("cut or broken at %d", i)
		}
	}
	for _, text := range []string{"", "dw-", key + "0", " " + key, key + "\n", strings.ToUpper(key), "sk-" + key[3:], strings.Repeat("a", 1<<20)} {
		if Check(text) == nil {
			t.Errorf("%.60q", text)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("dw-")
	f.Add(New().Reveal())
	f.Fuzz(func(t *testing.T, text string) {
		if Check(text) == nil && (len(text) != Size || !strings.HasPrefix(text, Begin)) {
			t.Errorf("%q", text)
		}
	})
}

// TestDigests covers attack K06: digests are made with a key that is not in the store, and survive a restart.
func TestDigests(t *testing.T) {
	open := func(store storage.Store, master seal.MasterKey) *Digester {
		k, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, func() time.Time { return time.Unix(0, 0) })
		if err != nil {
			t.Fatal(err)
		}
		return NewDigester(k)
	}
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	store := func() storage.Store {
		return sqlitetest.Open(t)
	}
	ours, theirs := store(), store()
	key := New()
	d := open(ours, master)
	digest := d.Digest(key)
	if len(digest) != storage.APIKeyHMACSize {
		t.Errorf("%d bytes", len(digest))
	}
	if got := open(ours, master).Lookup(key); len(got) != 1 || string(got[0]) != string(digest) {
		t.Error("another digest after a restart")
	}
	if string(open(theirs, master).Digest(key)) == string(digest) {
		t.Error("another gateway has the same digest")
	}
	if plain := sha256.Sum256([]byte(key.Reveal())); string(plain[:]) == string(digest) {
		t.Error("no key goes into the digest")
	}
	if string(d.Digest(New())) == string(digest) {
		t.Error("two keys have one digest")
	}
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		scopes         string
		llm, gpt, mini bool
		mcp            bool
	}{
		{"", false, false, false, false},
		{"llm", true, true, true, false},
		{"mcp", false, false, false, true},
		{"llm mcp", true, true, true, true},
		{"model:gpt", true, true, false, false},
		{"llm model:gpt", true, true, false, false},
		{"model:gpt model:openai/mini llm", true, true, true, false},
	} {
		s, err := ParseScopes(strings.Fields(tt.scopes))
		if err != nil || s.LLM() != tt.llm || s.Model("gpt") != tt.gpt || s.Model("openai/mini") != tt.mini || s.MCP != tt.mcp || s.LLM() != (s.Model("gpt") || s.Model("openai/mini")) {
			t.Errorf("%q: %+v %v", tt.scopes, s, err)
		}
	}
	for _, scope := range []string{"", "LLM", "llm ", "model:", "model: gpt", "model:a\nb", "admin", "*", "model:*", "mcp:x", "model:" + strings.Repeat("a", 129)} {
		if s, err := ParseScopes([]string{ScopeLLM, ScopeMCP, scope}); err == nil || s.LLM() || s.MCP {
			t.Errorf("%q was taken for %+v", scope, s)
		}
	}
}

// TestProvisioningScope checks that a key for provisioning is good for nothing else.
func TestProvisioningScope(t *testing.T) {
	s, err := ParseScopes([]string{ScopeSCIM})
	if err != nil || !s.SCIM || s.MCP || s.LLM() {
		t.Errorf("%+v %v", s, err)
	}
	for _, other := range []string{ScopeLLM, ScopeMCP, "model:a"} {
		if s, err := ParseScopes([]string{ScopeSCIM, other}); err != ErrScopeAlone || s.SCIM || s.MCP || s.LLM() { //nolint:errorlint // it is returned as it is
			t.Errorf("%s: %+v %v", other, s, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	key := New().Reveal()
	b.ReportAllocs()
	for b.Loop() {
		if Check(key) != nil {
			b.Fatal("refused")
		}
	}
}
