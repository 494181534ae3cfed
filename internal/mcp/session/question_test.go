package session

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"testing"
)

type hmacs struct{ key string }

func (h hmacs) AppendMAC(to, message []byte) []byte {
	m := hmac.New(sha256.New, []byte(h.key))
	m.Write(message)
	return m.Sum(to)
}

func (h hmacs) CheckMAC(message, tag []byte) bool {
	return hmac.Equal(h.AppendMAC(nil, message), tag)
}

// TestQuestions checks that an answer belongs to a question to exactly this client in this session, at any node, and
// that the server gets its id as it wrote it.
func TestQuestions(t *testing.T) {
	asks, answers := NewQuestions(hmacs{"k"}), NewQuestions(hmacs{"k"})
	b := Binding{Organization: "o", User: "alice", Agent: "a", Server: "s"}
	for _, id := range []string{`1`, `-1.50e3`, `"x"`, `"a\u0062\"c"`, `""`, `"` + strings.Repeat("x", MaxQuestion-2) + `"`} {
		asked := asks.Mark([]byte(id), "session", b)
		if again := asks.Mark([]byte(id), "session", b); string(again) != string(asked) {
			t.Errorf("%s is asked under %s, and resumed under %s", id, asked, again)
		}
		own, ok := answers.Unmark(asked, "session", b)
		if !ok || string(own) != id {
			t.Errorf("%s comes back as %s, %v", id, own, ok)
		}
		escaped := `"\u0064` + string(asked[2:])
		if own, ok := answers.Unmark([]byte(escaped), "session", b); !ok || string(own) != id {
			t.Errorf("spelled otherwise: %s, %v", own, ok)
		}
		for name, tc := range map[string]struct {
			id, session string
			b           Binding
		}{
			"another session":      {string(asked), "other", b},
			"no session":           {string(asked), "", b},
			"another user":         {string(asked), "session", Binding{"o", "bob", "", "a", "s"}},
			"another client":       {string(asked), "session", Binding{"o", "alice", "", "b", "s"}},
			"another issuer":       {string(asked), "session", Binding{"o", "alice", "i", "a", "s"}},
			"another server":       {string(asked), "session", Binding{"o", "alice", "", "a", "t"}},
			"another organization": {string(asked), "session", Binding{"p", "alice", "", "a", "s"}},
			"the server's own":     {id, "session", b},
			"changed":              {string(asked[:len(asked)-2]) + `A"`, "session", b},
			"longer":               {string(asked[:len(asked)-1]) + `AAAA"`, "session", b},
			"cut":                  {string(asked[:40]) + `"`, "session", b},
			"nothing":              {`"` + marked + `"`, "session", b},
			"no base64":            {`"` + marked + `!!!"`, "session", b},
			"null":                 {`null`, "session", b},
			"empty":                {``, "session", b},
		} {
			if own, ok := answers.Unmark([]byte(tc.id), tc.session, tc.b); ok && string(own) != id || ok && name != "changed" {
				t.Errorf("%s, %s: %s", id, name, own)
			}
		}
	}
	if asks.Again([]byte("a")) || asks.Again([]byte("b")) || !asks.Again([]byte("a")) {
		t.Error("answers are not told apart")
	}
	for i := range maxAnswered {
		asks.Again(binary.BigEndian.AppendUint32(nil, uint32(i)))
	}
	if asks.Again([]byte("a")) || len(asks.answered) != maxAnswered || len(asks.order) != maxAnswered {
		t.Errorf("%d answers are remembered", len(asks.answered))
	}
	if got := asks.Mark(make([]byte, MaxQuestion+1), "", b); got != nil {
		t.Errorf("too long, and asked under %d bytes", len(got))
	}
	if _, ok := NewQuestions(hmacs{"other"}).Unmark(asks.Mark([]byte("1"), "", b), "", b); ok {
		t.Error("of another gateway")
	}
}
