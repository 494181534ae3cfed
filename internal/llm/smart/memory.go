package smart

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// remembered is the number of conversations that are kept at least before one without recent requests is forgotten.
	// There may be twice as many: about 12 MiB.
	remembered = 1 << 16
	// rememberedFor is the time for which a conversation is kept after its last request.
	rememberedFor = time.Hour
)

// conversationKey is a digest of everything that a remembered answer depends on.
type conversationKey [sha256.Size]byte

// conversationOf names a conversation by caller, alias, and first user message. The state of the policy is also part of
// the name, so that a change of policy starts anew.
func conversationOf(organization string, m *storage.SmartModel, q Request) conversationKey {
	first := sha256.Sum256([]byte(q.FirstUser))
	var changed [8]byte
	binary.BigEndian.PutUint64(changed[:], uint64(m.UpdatedAt.UnixMicro()))
	h := sha256.New()
	for _, field := range [...]string{organization, m.ID, string(changed[:]), m.Alias, q.Caller, string(first[:])} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(field)))
		h.Write(length[:])
		h.Write([]byte(field))
	}
	var key conversationKey
	h.Sum(key[:0])
	return key
}

// memory keeps answers of conversations in two generations. When the young one is full, it replaces the old one, which
// is forgotten. A conversation that is asked for again becomes young.
type memory struct {
	mu         sync.Mutex
	most       int // entries in one generation
	young, old map[conversationKey]recollection
}

type recollection struct {
	expires time.Time
	answer  int
}

// recall finds the answer of a conversation, and extends its life.
func (m *memory) recall(key conversationKey, now time.Time) (answer int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.renew(key, now)
}

// keep stores an answer and returns the one to use. That is an earlier answer from another request of the same
// conversation, if there is one.
func (m *memory) keep(key conversationKey, answer int, now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.renew(key, now); ok {
		return first
	}
	m.put(key, recollection{expires: now.Add(rememberedFor), answer: answer})
	return answer
}

func (m *memory) renew(key conversationKey, now time.Time) (answer int, ok bool) {
	r, ok := m.young[key]
	if !ok {
		r, ok = m.old[key]
	}
	if !ok || !now.Before(r.expires) {
		return 0, false
	}
	r.expires = now.Add(rememberedFor)
	m.put(key, r)
	return r.answer, true
}

func (m *memory) put(key conversationKey, r recollection) {
	if _, here := m.young[key]; !here && len(m.young) >= m.most {
		m.old, m.young = m.young, nil
	}
	if m.young == nil {
		m.young = make(map[conversationKey]recollection)
	}
	m.young[key] = r
}
