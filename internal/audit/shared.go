package audit

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// Most of what the intent of a call says is the same in each call of somebody to a server: who, as what, by which rule. It
// is the entry's shared part, the last member of the short form, and the own part is what stands before it:
//
//	{"I":"<brief id>","t":<time>,"o":"<tool>","g":"<brief digest>","0":{"u":"<user>","m":"<server>","d":"allow"}}
//
// What is hashed of a record has the shared part's hash, which is computed once. A segment has a shared part once for each
// chain: records that follow have the sequence of the record that it stands in ("0":17). Whoever reads records out of a
// segment or a chunk gets them whole.
const (
	sharingStart = `{"I":"` // in place of shortStart
	sharedStart  = `,"0":`
)

// Bounds of the shared parts of a chain that records in a segment can refer to. What is beyond stands in each record. They
// belong to the format: a reader with others takes for a repetition what is beyond. Of all chains together a segment's size
// bounds them, since each stands in it.
const (
	maxShared     = 4096
	maxSharedSize = 1 << 20
)

// shared is a shared part.
type shared struct {
	text   string
	digest [sha256.Size]byte
	// sequence is that of the record that it stands in, to which others refer; 0: none can.
	sequence int64

	// chunk is the number of the last chunk that it was put into, with the record of sequence at.
	chunk uint64
	at    int64

	lost  bool // a record refers to it, and it is not there
	wrong bool // it is not what was written, which has been told
}

func newShared(text []byte) *shared {
	return &shared{text: string(text), digest: sha256.Sum256(text)}
}

// sharedParts are those of one chain in a segment. Writer and readers have the same ones at the same place: each shared
// part has one spelling there.
type sharedParts struct {
	byText map[string]*shared
	size   int
}

// room reports whether s can be referred to, or could be.
func (p *sharedParts) room(s *shared) bool {
	return s.sequence > 0 || len(p.byText) < maxShared && p.size+len(s.text) <= maxSharedSize
}

// define notes that s stands in the record with this sequence, if there is room.
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

// splitShared cuts an entry's whole short form; part is nil when it has none.
func splitShared(text []byte) (own, part []byte) {
	if !bytes.HasPrefix(text, []byte(sharingStart)) || !bytes.HasSuffix(text, []byte("}}")) {
		return text, nil
	}
	// Quotes in texts are escaped, and nothing in a shared part has members of its own.
	at := bytes.LastIndex(text, []byte(sharedStart+"{"))
	if at < 0 {
		return text, nil
	}
	return text[:at], text[at+len(sharedStart) : len(text)-1]
}

// splitReference cuts an entry that refers to the record which has its shared part.
func splitReference(text []byte) (own []byte, sequence int64, ok bool) {
	at := bytes.LastIndex(text, []byte(sharedStart))
	if at < 0 || !bytes.HasPrefix(text, []byte(sharingStart)) || text[len(text)-1] != '}' {
		return nil, 0, false
	}
	sequence, ok = parseSequence(text[at+len(sharedStart) : len(text)-1])
	return text[:at], sequence, ok
}

// joinShared makes the whole text again.
func joinShared(own []byte, part string) []byte {
	return appendShared(append(make([]byte, 0, len(own)+len(sharedStart)+len(part)+1), own...), part)
}

// appendShared ends an own part with the shared part.
func appendShared(b []byte, part string) []byte {
	return append(append(append(b, sharedStart...), part...), '}')
}

// appendReference ends an own part with the sequence of the record that has the shared part.
func appendReference(b []byte, sequence int64) []byte {
	return append(strconv.AppendInt(append(b, sharedStart...), sequence, 10), '}')
}

// sharing reports whether an entry has a shared part: intents of calls have.
func sharing(e *storage.AuditEntry) bool {
	return e.Kind == storage.AuditCall && e.Call == "" && len(e.Outcomes) == 0
}

// appendSharedOf writes an entry's shared part.
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

// appendOwnOf writes an entry's own part.
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

// sharedKey is what a shared part is made of, but for roles and groups.
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

// recentShared remembers shared parts by what they are made of, so that those of most calls need not be written to be
// found. It decides nothing: what it does not know is looked up by its text. Two that meet in a place have room there.
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

// ending is the last bytes of a text: what ids that were made at the same time differ in.
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

// find returns the shared part of e in the chain, to which records can refer; nil when it is not known here.
func (r *recentShared) find(c *chain, e *storage.AuditEntry) *shared {
	place := r.place(e)
	for i := range place {
		if place[i].is(c, e) {
			return place[i].shared
		}
	}
	return nil
}

// remember notes the shared part of e. The method may be a piece of a request, which is not to be kept; all else is kept by
// others too, and does not change: nobody writes into the lists of a caller's roles and groups.
func (r *recentShared) remember(c *chain, e *storage.AuditEntry, s *shared) {
	place := r.place(e)
	place[1] = place[0]
	place[0] = recentPart{chain: c, key: keyOf(e), roles: e.Roles, groups: e.Groups, shared: s}
	place[0].key.method = strings.Clone(e.Method)
}

// is reports whether it is the shared part of e in the chain, and can be referred to.
func (r *recentPart) is(c *chain, e *storage.AuditEntry) bool {
	return r.chain == c && r.shared.sequence > 0 && r.key == keyOf(e) && sameTexts(r.roles, e.Roles) && sameTexts(r.groups, e.Groups)
}

// sameTexts tells nil from empty, as the text does. The lists are one in most calls, and need not be read then.
func sameTexts(a, b []string) bool {
	if len(a) != len(b) || (a == nil) != (b == nil) {
		return false
	}
	return len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b)
}
