package format

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestSplitShared checks which texts have a shared part: another hash is made of them.
func TestSplitShared(t *testing.T) {
	for text, want := range map[string]string{
		`{"I":"x","t":1,"0":{"u":"a"}}`:       `{"u":"a"}`,
		`{"I":"x","t":1,"0":{}}`:              `{}`,
		`{"I":"x","j":{"0":{"0":{}}},"0":{}}`: `{}`,
		`{"i":"x","t":1,"0":{"u":"a"}}`:       "",
		`{"I":"x","t":1,"0":{"u":"a"}`:        "",
		`{"I":"x","t":1,"0":{"u":"a"}} `:      "",
		`{"I":"x","t":1,"0":17}}`:             "",
		`{"I":"x","t":1,"2":{"u":"a"}}`:       "",
		`,"0":{}}`:                            "",
		"":                                    "",
	} {
		own, part := SplitShared([]byte(text))
		if string(part) != want || (part == nil) != (want == "") {
			t.Errorf("%s has the shared part %s", text, part)
		}
		if part == nil && string(own) != text || part != nil && string(AppendShared(own, part)) != text {
			t.Errorf("%s has the own part %s", text, own)
		}
	}
}

// TestAppendSharedOf checks that a shared part is an object, also an empty one, and has no byte more.
func TestAppendSharedOf(t *testing.T) {
	for want, e := range map[string]storage.AuditEntry{
		"before{}": {Event: "decision"}, `before{"u":"a"}`: {Event: "decision", UserID: "a"}, `before{"v":"model.call","q":3}`: {Event: "model.call", PolicyRevision: 3},
	} {
		if got := AppendSharedOf([]byte("before"), &e); string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestSharing checks that only an entry of which nothing would be lost has a shared part.
func TestSharing(t *testing.T) {
	for name, c := range map[string]struct {
		entry storage.AuditEntry
		want  bool
	}{
		"an intent":  {storage.AuditEntry{Kind: storage.AuditCall, Event: "decision"}, true},
		"an outcome": {storage.AuditEntry{Kind: storage.AuditCall, Event: "outcome", Call: "c"}, false},
		"outcomes":   {storage.AuditEntry{Kind: storage.AuditCall, Event: "outcomes", Outcomes: make([]storage.AuditOutcome, 1)}, false},
		"a write":    {storage.AuditEntry{Kind: storage.AuditAdmin, Event: "decision"}, false},
	} {
		if Sharing(&c.entry) != c.want {
			t.Errorf("%s has a shared part: %v", name, !c.want)
		}
	}
}
