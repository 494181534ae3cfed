package audit

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// Most fields of an intent are the same in each call of one caller to one server: the user, the agent, the rule. These
// fields are the entry's shared part, the last member of the short form. The own part is the text before it:
//
//	{"I":"<brief id>","t":<time>,"o":"<tool>","g":"<brief digest>","0":{"u":"<user>","m":"<server>","d":"allow"}}
//
// The hash of a record is computed over the hash of its shared part, which is computed once. A segment has a shared part
// once for each chain. Later records have the sequence of the record with the shared part in its place ("0":17). Readers
// of a segment or a chunk get each record in full.
const (
	sharingStart = `{"I":"` // in place of shortStart
	sharedStart  = `,"0":`
)

// These bounds limit the shared parts of a chain that records in a segment can refer to. Shared parts beyond them are
// written in each record. The bounds are part of the format: a reader with other bounds would take such a part for a
// repetition. The segment's size limits the shared parts of all chains together, since each is in the segment.
const (
	maxShared     = 4096
	maxSharedSize = 1 << 20
)

// shared is one shared part.
type shared struct {
	text   string
	digest [sha256.Size]byte
	// sequence is the sequence of the record that has the shared part, to which other records refer. 0: no record can
	// refer to it.
	sequence int64

	// chunk is the number of the last chunk that has the shared part, and at is the sequence of the record in it.
	chunk uint64
	at    int64

	lost  bool // a record refers to it, and it is missing
	wrong bool // it was changed, and that has been reported
}

func newShared(text []byte) *shared {
	return &shared{text: string(text), digest: sha256.Sum256(text)}
}

// sharedParts holds the shared parts of one chain in a segment. Writer and readers have the same ones at the same
// position, and each shared part has one spelling there.
type sharedParts struct {
	byText map[string]*shared
	size   int
}

// room reports whether records can refer to s, or could when it is defined.
func (p *sharedParts) room(s *shared) bool {
	return s.sequence > 0 || len(p.byText) < maxShared && p.size+len(s.text) <= maxSharedSize
}

// define notes that the record with this sequence has s, if there is room.
func (p *sharedParts) define(s *shared, sequence int64) bool {
	if !p.room(s) {
		return false
	}
	if p.byText == nil {
		p.byText = make(map[string]*shared)
	}
	p.byText[s.text] = s
	p.size += len(s.text)
	s.sequence = sequence
	return true
}

// forget undoes define.
func (p *sharedParts) forget(s *shared) {
	delete(p.byText, s.text)
	p.size -= len(s.text)
	s.sequence = 0
}

// splitShared splits an entry's full short form into its own and its shared part. part is nil when there is no shared
// part.
func splitShared(text []byte) (own, part []byte) {
	if !bytes.HasPrefix(text, []byte(sharingStart)) || !bytes.HasSuffix(text, []byte("}}")) {
		return text, nil
	}
	// Quotes in texts are escaped, and no value in a shared part is an object.
	at := bytes.LastIndex(text, []byte(sharedStart+"{"))
	if at < 0 {
		return text, nil
	}
	return text[:at], text[at+len(sharedStart) : len(text)-1]
}

// splitReference splits an entry that refers to the record with its shared part.
func splitReference(text []byte) (own []byte, sequence int64, ok bool) {
	at := bytes.LastIndex(text, []byte(sharedStart))
	if at < 0 || !bytes.HasPrefix(text, []byte(sharingStart)) || text[len(text)-1] != '}' {
		return nil, 0, false
	}
	sequence, ok = parseSequence(text[at+len(sharedStart) : len(text)-1])
	return text[:at], sequence, ok
}

// joinShared joins an own part and a shared part to the full text.
func joinShared(own []byte, part string) []byte {
	return appendShared(append(make([]byte, 0, len(own)+len(sharedStart)+len(part)+1), own...), part)
}

// appendShared completes an own part with the shared part.
func appendShared(b []byte, part string) []byte {
	return append(append(append(b, sharedStart...), part...), '}')
}

// appendReference completes an own part with the sequence of the record that has the shared part.
func appendReference(b []byte, sequence int64) []byte {
	return append(strconv.AppendInt(append(b, sharedStart...), sequence, 10), '}')
}

// sharing reports whether an entry has a shared part. The intents of calls have one.
func sharing(e *storage.AuditEntry) bool {
	return e.Kind == storage.AuditCall && e.Call == "" && len(e.Outcomes) == 0
}

// appendSharedOf appends an entry's shared part.
func appendSharedOf(b []byte, e *storage.AuditEntry) []byte {
	start := len(b)
	if e.Event != usualEvent(false) {
		b = appendMember(b, 'v', e.Event)
	}
	b = appendKnown(b, 'u', e.UserID)
	b = appendKnown(b, 'a', e.AgentID)
	b = appendKnown(b, 'l', e.Client)
	b = appendKnown(b, 'm', e.ServerID)
	b = appendKnown(b, 'n', e.Server)
	b = appendKnown(b, 'r', e.Method)
	b = appendKnown(b, 'd', e.Decision)
	b = appendKnown(b, 'e', e.Rule)
	b = appendKnown(b, 'p', e.PolicyID)
	b = appendNumber(b, 'q', int64(e.PolicyRevision))
	b = appendTexts(b, 'y', e.Roles)
	b = appendTexts(b, 'z', e.Groups)
	if len(b) == start {
		b = append(b, ' ')
	}
	b[start] = '{' // in place of the comma
	return append(b, '}')
}

// appendOwnOf appends an entry's own part.
func appendOwnOf(b []byte, e *storage.AuditEntry) []byte {
	b = append(b, sharingStart...)
	b = append(b, e.ID...)
	b = append(b, shortTime...)
	b = strconv.AppendInt(b, e.At.UnixNano(), 10)
	b = appendKnown(b, 's', e.Session)
	b = appendKnown(b, 'o', e.Tool)
	b = appendKnown(b, 'w', e.ApprovalID)
	if len(e.Shadow) > 0 {
		b = appendJSON(b, 'x', e.Shadow)
	}
	b = appendKnown(b, 'g', e.ArgumentsDigest)
	if len(e.Arguments) > 0 {
		b = appendJSON(b, 'j', e.Arguments)
	}
	return appendEnd(b, e)
}

// sharedKey holds the fields of a shared part, without roles and groups.
type sharedKey struct {
	event, user, agent, client, server, slug, method, decision, rule, policy string
	revision                                                                 int
}

func keyOf(e *storage.AuditEntry) sharedKey {
	return sharedKey{
		event: e.Event, user: e.UserID, agent: e.AgentID, client: e.Client, server: e.ServerID, slug: e.Server, method: e.Method,
		decision: e.Decision, rule: e.Rule, policy: e.PolicyID, revision: e.PolicyRevision,
	}
}

// recentShared is a cache of shared parts by their fields. With it the shared parts of most calls need not be encoded to
// be found. A part that is not in it is looked up by its text. Each place has room for two parts.
type recentShared [1 << recentBits][2]recentPart

const recentBits = 7

type recentPart struct {
	chain         *chain
	key           sharedKey
	roles, groups []string
	shared        *shared
}

func (r *recentShared) place(e *storage.AuditEntry) *[2]recentPart {
	h := ending(e.UserID)*3 ^ ending(e.ServerID)*5 ^ ending(e.Rule)
	return &r[h*0x9e3779b97f4a7c15>>(64-recentBits)] // the high bits: the last characters count too
}

// ending returns the last eight bytes of a text as a number. Ids that were made at the same time differ in them.
func ending(text string) (bytes uint64) {
	if n := len(text); n >= 8 {
		t := text[n-8:]
		return uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 | uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
	}
	for i := range len(text) {
		bytes = bytes<<8 | uint64(text[i])
	}
	return bytes
}

// find returns the shared part of e in the chain, if records can refer to it. It returns nil when the part is not in the
// cache.
func (r *recentShared) find(c *chain, e *storage.AuditEntry) *shared {
	place := r.place(e)
	for i := range place {
		if place[i].is(c, e) {
			return place[i].shared
		}
	}
	return nil
}

// remember stores the shared part of e. It copies the method, which may be a piece of a request that must not stay in
// memory. All other texts stay in memory anyway and do not change: no code writes into the lists of a caller's roles and
// groups.
func (r *recentShared) remember(c *chain, e *storage.AuditEntry, s *shared) {
	place := r.place(e)
	place[1] = place[0]
	place[0] = recentPart{chain: c, key: keyOf(e), roles: e.Roles, groups: e.Groups, shared: s}
	place[0].key.method = strings.Clone(e.Method)
}

// is reports whether r is the shared part of e in the chain, and records can refer to it.
func (r *recentPart) is(c *chain, e *storage.AuditEntry) bool {
	return r.chain == c && r.shared.sequence > 0 && r.key == keyOf(e) && sameTexts(r.roles, e.Roles) && sameTexts(r.groups, e.Groups)
}

// sameTexts reports whether two lists are the same. nil and empty lists differ, as they do in the text. In most calls
// both are the same slice, and need not be compared.
func sameTexts(a, b []string) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b)
}
