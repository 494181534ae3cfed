package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// TestEntry checks that encoding/json reads the entries of appendEntry, and would write the same members.
func TestEntry(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,40}`), rapid.SampledFrom([]string{"", `"`, `\`, "\u2028", "<&>", "\x00", "\x7f", "12345678\"", "1234567\\"}))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string { return text.Draw(t, name) }
		at := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).UTC()
		e := storage.AuditEntry{
			ID: NewID(at), At: at, Kind: storage.AuditKind(draw("kind")), Event: draw("event"), Call: draw("call"), UserID: draw("user"), AgentID: draw("agent"),
			Client: draw("client"), Session: draw("session"), ServerID: draw("server id"), Server: draw("server"), Method: draw("method"), Tool: draw("tool"),
			Decision: draw("decision"), Rule: draw("rule"), PolicyID: draw("policy"), PolicyRevision: rapid.Int().Draw(t, "revision"), ApprovalID: draw("approval"),
			ArgumentsDigest: draw("digest"), Outcome: draw("outcome"), Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
			UpstreamStatus: rapid.IntRange(0, 599).Draw(t, "status"), TraceID: draw("trace"),
		}
		if rapid.Bool().Draw(t, "more") {
			e.Shadow = []storage.AuditShadow{{PolicyID: draw("shadow"), Revision: 2, Decision: "deny"}}
			e.Arguments = json.RawMessage("{\"a\": [1,\n 2]}")
			e.Detail = map[string]any{"note": draw("note")}
			e.Roles, e.Groups = []string{}, []string{draw("group"), draw("group")}
		}
		// An outcome needs no id of its own.
		implied := e
		if rapid.Bool().Draw(t, "implied") {
			e.Call = NewID(at)
			implied, e.ID = e, e.Call[:14]+"8"+e.Call[15:]
			implied.ID = ""
		}
		got := AppendEntry(nil, &implied)
		if bytes.ContainsAny(got, "\n\r\x00\x1b") {
			t.Fatalf("more than a line: %q", got)
		}
		// Both encodings are read as the same entry.
		var mine, theirs any
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(LongText(got), &mine), json.Unmarshal(want, &theirs)); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		delete(mine.(map[string]any), "time")
		delete(theirs.(map[string]any), "time")
		if diff := cmp.Diff(theirs, mine); diff != "" {
			t.Fatal(diff)
		}
		if !TimeOf(got).Equal(at) || NanosOf(got) != at.UnixNano() || !TimeOf(want).Equal(at) || NanosOf(want) != at.UnixNano() {
			t.Fatalf("time of %s is %v", got, TimeOf(got))
		}
		// A chain of long entries follows storage, and one of short entries docs/audit-format.md.
		chain := storage.AuditChain{OrganizationID: acme, Node: "n", Segment: "s", Sequence: 4}
		same := chain
		r := chain.Next(want)
		if hash, _ := Next(&same, want, nil); hash != r.Hash || same != chain {
			t.Fatal("the hash is not the one of storage")
		}
		if hash, _ := Next(&same, got, nil); hash != sha256.Sum256(slices.Concat(r.Hash[:], []byte{2, 0, 0, 0, 0, 0, 0, 0, 6}, got)) || same.Sequence != 6 {
			t.Fatal("the hash of a short entry is another one")
		}
	})
}

// TestSharedEntry checks that an entry with a shared part is read unchanged, is split into the same parts again, and is
// hashed as docs/audit-format.md says.
func TestSharedEntry(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,40}`), rapid.SampledFrom([]string{"", `,"0":{`, `{"0":1}}`, `,"0":17}`, "0", "}", "\u2028", "\xff"}))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) string { return text.Draw(t, name) }
		at := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "second"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanosecond")).UTC()
		e := storage.AuditEntry{
			ID: NewID(at), At: at, Kind: storage.AuditCall, Event: rapid.SampledFrom([]string{"decision", "model.call"}).Draw(t, "event"),
			UserID: draw("user"), AgentID: draw("agent"), Client: draw("client"), Session: draw("session"), ServerID: draw("server id"), Server: draw("server"),
			Method: draw("method"), Tool: draw("tool"), Decision: draw("decision"), Rule: draw("rule"), PolicyID: draw("policy"),
			PolicyRevision: rapid.Int().Draw(t, "revision"), ApprovalID: draw("approval"), ArgumentsDigest: draw("digest"), TraceID: draw("trace"),
		}
		if rapid.Bool().Draw(t, "more") {
			e.Shadow = []storage.AuditShadow{{PolicyID: draw("shadow"), Revision: 2, Decision: "deny"}}
			e.Arguments = json.RawMessage(`{"a":1,"0":{"b":{"c":2}}}`)
			e.Detail = map[string]any{"0": map[string]any{"0": map[string]any{}}}
			e.Roles, e.Groups = []string{}, []string{draw("group"), draw("group")}
		}
		own, shared := AppendOwnOf(nil, &e), AppendSharedOf(nil, &e)
		whole := AppendShared(slices.Clone(own), shared)
		if got, part := SplitShared(whole); !bytes.Equal(got, own) || !bytes.Equal(part, shared) {
			t.Fatalf("%s is cut into %s and %s", whole, got, part)
		}
		var mine, theirs any
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(json.Unmarshal(LongText(whole), &mine), json.Unmarshal(want, &theirs)); err != nil || !json.Valid(whole) {
			t.Fatalf("%v: %s", err, whole)
		}
		delete(mine.(map[string]any), "time")
		delete(theirs.(map[string]any), "time")
		if diff := cmp.Diff(theirs, mine); diff != "" {
			t.Fatal(diff)
		}
		if !TimeOf(whole).Equal(at) || NanosOf(own) != at.UnixNano() {
			t.Fatalf("time of %s is %v", whole, TimeOf(whole))
		}
		chain := storage.AuditChain{OrganizationID: acme, Node: "n", Segment: "s", Sequence: 4, Hash: sha256.Sum256(nil)}
		hash, _ := Next(&chain, whole, nil)
		of := sha256.Sum256(shared)
		before := sha256.Sum256(nil)
		if documented := sha256.Sum256(slices.Concat(before[:], []byte{3, 0, 0, 0, 0, 0, 0, 0, 5}, of[:], own)); hash != documented {
			t.Fatal("the hash is another one")
		}
	})
}

// TestChainStart checks that the hash of a chain's first record, and so every later hash, covers the chain's name.
func TestChainStart(t *testing.T) {
	text := AppendEntry(nil, intent("create_issue"))
	seen := make(map[[sha256.Size]byte]bool)
	for _, c := range []storage.AuditChain{
		{OrganizationID: acme, Node: "n", Segment: "s"}, {OrganizationID: other, Node: "n", Segment: "s"}, {OrganizationID: acme, Node: "ns"},
		{OrganizationID: acme, Node: "n", Segment: "t"}, {OrganizationID: acme + "n", Segment: "s"},
	} {
		hash, _ := Next(&c, text, nil)
		if seen[hash] {
			t.Errorf("%+v begins like another one", c)
		}
		seen[hash] = true
	}
}

// TestBehindHash checks that the hash before a record counts, whatever its sequence is: a crafted chunk may say that a
// chain's first record follows a hash, or that a later one follows none.
func TestBehindHash(t *testing.T) {
	text := AppendEntry(nil, intent("create_issue"))
	start := ChainOf(acme, "n", "s")
	name := start.NameHash()
	for sequence, before := range map[int64][sha256.Size]byte{0: {1}, 4: {}} {
		c := start
		c.Sequence, c.Hash = sequence, before
		want := sha256.Sum256(slices.Concat(before[:], []byte{2, 0, 0, 0, 0, 0, 0, 0, byte(sequence + 1)}, text))
		if hash, _ := Next(&c, text, nil); hash != want {
			t.Errorf("record %d behind %x has another hash", sequence+1, before)
		}
	}
	if hash, _ := Next(&start, text, nil); hash != sha256.Sum256(slices.Concat(name[:], []byte{2, 0, 0, 0, 0, 0, 0, 0, 1}, text)) {
		t.Error("the first record does not follow the chain's name")
	}
}

func TestNewID(t *testing.T) {
	at := time.UnixMilli(0x0190aabbccdd)
	one, two := NewID(at), NewID(at)
	if one == two || len(one) != 36 || !strings.HasPrefix(one, "0190aabb-ccdd-7") || !strings.ContainsRune("89ab", rune(one[19])) {
		t.Errorf("%s, %s", one, two)
	}
}

// TestName checks that an entry gets an id of its time and the digest of its arguments. Both are brief, and are read in
// full.
func TestName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arguments := rapid.SliceOf(rapid.Byte()).Draw(t, "arguments")
		var e storage.AuditEntry
		e.At = time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "at"))
		Name(&e, arguments)
		want := ""
		if len(arguments) > 0 {
			want = fmt.Sprintf("%x", sha256.Sum256(arguments))
		}
		read, err := EntryOf(&storage.AuditRecord{Text: AppendShared(AppendOwnOf(nil, &e), AppendSharedOf(nil, &e))})
		if err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("%012x", e.At.UnixMilli())
		if id := regexp.MustCompile("^" + at[:8] + "-" + at[8:] + "-7000-8[0-9a-f]{3}-[0-9a-f]{12}$"); !id.MatchString(read.ID) || read.ArgumentsDigest != want {
			t.Errorf("id %s, digest %s of %q, want %s", read.ID, read.ArgumentsDigest, arguments, want)
		}
		if len(e.ID) != briefSize || WholeID(e.ID, e.At.UnixNano()) != read.ID || len(arguments) > 0 && len(e.ArgumentsDigest) != briefDigestSize {
			t.Errorf("id %s, digest %s", e.ID, e.ArgumentsDigest)
		}
		number := rapid.Uint32().Draw(t, "number")
		if got := binary.BigEndian.AppendUint64(nil, digits(number)); string(got) != fmt.Sprintf("%08x", number) {
			t.Errorf("%08x is written %s", number, got)
		}
	})
}
