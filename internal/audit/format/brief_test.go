package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// TestBrief checks that brief ids and digests are base64url, and have only one spelling.
func TestBrief(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.Uint64Range(0, 1<<48-1).Draw(t, "bits")
		if got, want := binary.BigEndian.AppendUint64(nil, sixes(bits)), base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, bits)[2:]); string(got) != want {
			t.Errorf("%012x is written %s, want %s", bits, got, want)
		}
		sum := [sha256.Size]byte(rapid.SliceOfN(rapid.Byte(), sha256.Size, sha256.Size).Draw(t, "sum"))
		var text [briefDigestSize]byte
		putDigest(&text, &sum)
		if want := base64.RawURLEncoding.EncodeToString(sum[:]); string(text[:]) != want {
			t.Errorf("%x is written %s, want %s", sum, text, want)
		}
		if long, ok := appendWholeDigest(nil, []byte(`"`+string(text[:])+`"`)); !ok || string(long) != fmt.Sprintf(`"%x"`, sum) {
			t.Errorf("%s is read as %s", text, long)
		}
		random := rapid.Uint64Range(0, 1<<60-1).Draw(t, "random")
		brief := base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, random<<4))[:briefSize]
		if got, ok := fromBrief(brief); !ok || got != random {
			t.Errorf("%s is read as %x, want %x", brief, got, random)
		}
		nanos := rapid.Int64().Draw(t, "nanos")
		if id := WholeID(brief, nanos); len(id) != idSize || !plain([]byte(id)) || id[19] != '8' {
			t.Errorf("%s at %d is %q", brief, nanos, id)
		}
	})
	for _, id := range []string{"", "0190ffff-0000-7000-8000-000000000001", "123456789", "12345678901", "12345678+9", "12345678/9", "1234567 90", "12345678=="} {
		if got := WholeID(id, math.MaxInt64); got != id {
			t.Errorf("%s is taken for a brief id, %s", id, got)
		}
	}
	for _, value := range []string{`""`, `"` + strings.Repeat("A", 42) + `B"`, `"` + strings.Repeat("A", 44) + `"`, `[` + strings.Repeat("1", 43) + `]`, `"` + strings.Repeat("A", 42) + `="`, `"` + strings.Repeat("A", 42) + "\r" + `"`} {
		if long, ok := appendWholeDigest(nil, []byte(value)); ok {
			t.Errorf("%s is taken for a brief digest, %s", value, long)
		}
	}
}

// TestBriefRead checks that a brief id gets its time at any position of the time, and that no other value becomes an id.
func TestBriefRead(t *testing.T) {
	const whole = "018cc251-f400-7000-8000-000000000000" // of 2024-01-01
	for text, want := range map[string]string{
		`{"i":"AAAAAAAAAA","t":1704067200000000000}`:                                       `{"id":"` + whole + `","time":"2024-01-01T00:00:00.000000000Z","kind":"call","event":"decision"}`,
		`{"i":"AAAAAAAAAA","o":"` + strings.Repeat("x", 99) + `","t":1704067200000000000}`: `{"id":"` + whole + `","tool":"` + strings.Repeat("x", 99) + `","time":"2024-01-01T00:00:00.000000000Z","kind":"call","event":"decision"}`,
		`{"i":"AAAAAAAAA+","t":1704067200000000000}`:                                       `{"id":"AAAAAAAAA+","time":"2024-01-01T00:00:00.000000000Z","kind":"call","event":"decision"}`,
		// Blanks are JSON too. A value that is no digest stays unchanged.
		`{"i":"0190ffff-0000-7000-8000-000000000001","t":17,"B":[["AAAAAAAAA" ,1,2]]}`: `{"id":"0190ffff-0000-7000-8000-000000000001","time":"1970-01-01T00:00:00.000000017Z","outcomes":[{"call":"AAAAAAAAA" ,"time":"1970-01-01T00:00:00.000000016Z","outcome":"ok","duration_ns":2,"upstream_status":200}],"kind":"call","event":"decision"}`,
		`{"i":"","t":17,"g":[` + strings.Repeat("1", 42) + `0]}`:                       `{"id":"","time":"1970-01-01T00:00:00.000000017Z","arguments_digest":[` + strings.Repeat("1", 42) + `0],"kind":"call","event":"decision"}`,
		`{"i":"","t":17,"g":` + strings.Repeat("1", 44) + `0}`:                         `{"id":"","time":"1970-01-01T00:00:00.000000017Z","arguments_digest":` + strings.Repeat("1", 44) + `0,"kind":"call","event":"decision"}`,
		`{"i":"","t":1704067200000000003,"B":[["AAAAAAAAAA",1,2]]}`:                    `{"id":"","time":"2024-01-01T00:00:00.000000003Z","outcomes":[{"call":"` + whole + `","time":"2024-01-01T00:00:00.000000002Z","outcome":"ok","duration_ns":2,"upstream_status":200}],"kind":"call","event":"decision"}`,
		`{"i":"AAAAAAAAAA"}`:                     `{"i":"AAAAAAAAAA"}`,
		`{"i":"AAAAAAAAAA","i":5,"t":"x"}`:       `{"i":"AAAAAAAAAA","i":5,"t":"x"}`,
		`{"i":"","i":"AAAAAAAAAA","t":17,"g":5}`: `{"id":"","id":"AAAAAAAAAA","time":"1970-01-01T00:00:00.000000017Z","arguments_digest":5,"kind":"call","event":"decision"}`,
	} {
		if long := LongText([]byte(text)); string(long) != want || !json.Valid(long) {
			t.Errorf("%s becomes\n%s, want\n%s", text, long, want)
		}
	}
}

// TestBriefTime checks that the time of a brief entry is found, for chunks that are made from files.
func TestBriefTime(t *testing.T) {
	e := intent("create_issue")
	Name(e, []byte("{}"))
	outcome := plainOutcome(e)
	alone := &storage.AuditEntry{ID: e.ID, At: e.At, Kind: storage.AuditCall, Event: "decision", Outcome: outcome.Outcome}
	for _, text := range [][]byte{AppendOwnOf(nil, e), AppendEntry(nil, alone)} {
		if nanos, ok := shortNanos(text); !ok || nanos != e.At.UnixNano() {
			t.Errorf("%s: %d, %v", text, nanos, ok)
		}
	}
}

// TestOutcomesForm checks that outcomes are read unchanged from either form.
func TestOutcomesForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(0, rapid.Int64Range(0, 1<<61).Draw(t, "at")).UTC()
		e := storage.AuditEntry{ID: NewID(at), At: at, Kind: storage.AuditCall, Event: "outcomes"}
		for range rapid.IntRange(1, 5).Draw(t, "outcomes") {
			e.Outcomes = append(e.Outcomes, storage.AuditOutcome{
				Call: rapid.String().Draw(t, "call"), At: at.Add(-time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "before"))), Outcome: rapid.OneOf(rapid.Just("ok"), rapid.String()).Draw(t, "outcome"), Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
				UpstreamStatus: rapid.OneOf(rapid.Just(200), rapid.IntRange(0, 599)).Draw(t, "status"),
			})
		}
		text := AppendEntry(nil, &e)
		if bytes.ContainsAny(text, "\n\r") || Sharing(&e) || !IsShort(text) || NanosOf(text) != at.UnixNano() {
			t.Fatalf("%q", text)
		}
		long, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{text, long} {
			if got, err := EntryOf(&storage.AuditRecord{Text: text}); err != nil || cmp.Diff(e, got) != "" {
				t.Fatalf("%s: %v, %s", LongText(text), err, cmp.Diff(e, got))
			}
		}
	})
	const head = `{"i":"0190ffff-0000-7000-8000-000000000001","t":1800000000000000000,"v":"outcomes","B":`
	for _, value := range []string{`{}`, `"x"`, `1`, `[1]`, `[[]]`, `[["a",1,"ok",1]]`, `[["a",1,"ok",1,200,1]]`, `[["a","1","ok",1,200]]`, `[["a",1.5,"ok",1,200]]`, `[["a",null,"ok",1,200]]`, `[["AAAAAAAAAA",1,"ok",1.5,200]]`, `[["AAAAAAAAAA",1,1.5]]`, `[["a",1]]`, `[["a",1,"ok",1,200]` + strings.Repeat(`,["a",1,"ok",1,200]`, MaxOutcomes) + "]"} {
		if long, err := expand([]byte(head + value + "}")); err == nil {
			t.Errorf("%s becomes %s", value, long)
		}
	}
}
