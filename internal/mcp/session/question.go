package session

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"sync"
)

// MACs makes and checks keyed digests of a fixed length, like seal.MAC. The digest of one message stays the same
// as long as its key does.
type MACs interface {
	AppendMAC(to, message []byte) []byte
	CheckMAC(message, tag []byte) bool
}

// Questions marks the ids of requests from servers to clients. An answer then proves that the question was asked, of
// which client, and in which session. Nothing has to be stored for it: the stream that asks and the answer may be at
// different nodes, and a stream that is resumed asks with the same id again. It is safe for concurrent use.
type Questions struct {
	macs   MACs
	length int // of a digest

	mu       sync.Mutex
	answered map[[16]byte]struct{} // of this process
	order    [][16]byte            // a ring, the oldest at next
	next     int
}

// maxAnswered is the number of answers that are remembered, so that a client that answers one question repeatedly is
// noticed.
const maxAnswered = 1 << 16

// NewQuestions makes a Questions whose digests are those of m.
func NewQuestions(m MACs) *Questions {
	return &Questions{macs: m, length: len(m.AppendMAC(nil, nil)), answered: make(map[[16]byte]struct{})}
}

// MaxQuestion is the maximum length of an id that is marked, in bytes as it was written.
const MaxQuestion = 1 << 10

const marked = "durward-q-"

// Mark returns the id under which b's client is asked the question that the server asks under id. Both are JSON
// texts. session is the client's session, "" for none. The result is nil when the id is longer than MaxQuestion.
func (q *Questions) Mark(id []byte, session string, b Binding) []byte {
	if len(id) > MaxQuestion {
		return nil
	}
	text := append(q.macs.AppendMAC(nil, question(id, session, b)), id...)
	return []byte(`"` + marked + base64.RawURLEncoding.EncodeToString(text) + `"`)
}

// Unmark returns the server's own id, as it wrote it, for the id of a client's answer. ok is false when this question
// was not asked: the id was not made by Mark, or for another client.
func (q *Questions) Unmark(id []byte, session string, b Binding) (own []byte, ok bool) {
	var text string
	if len(id) > 2*MaxQuestion || json.Unmarshal(id, &text) != nil {
		return nil, false
	}
	text, ok = strings.CutPrefix(text, marked)
	if !ok {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) <= q.length {
		return nil, false
	}
	tag, own := raw[:q.length], raw[q.length:]
	return own, q.macs.CheckMAC(question(own, session, b), tag)
}

// Again notes that a question is answered, by the id that Mark made. It reports whether it was answered before, as
// far as this process remembers.
func (q *Questions) Again(id []byte) bool {
	sum := sha256.Sum256(id)
	key := [16]byte(sum[:])
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, again := q.answered[key]; again {
		return true
	}
	if len(q.order) < maxAnswered {
		q.order = append(q.order, key)
	} else {
		delete(q.answered, q.order[q.next])
		q.order[q.next] = key
		q.next = (q.next + 1) % maxAnswered
	}
	q.answered[key] = struct{}{}
	return false
}

// question writes the message for the digest. The lengths of the binding come first; a session's id has no NUL.
func question(id []byte, session string, b Binding) []byte {
	return append(append(append(b.bound("mcp question"), session...), 0), id...)
}
