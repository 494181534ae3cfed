package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

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
		if id := wholeID(brief, nanos); len(id) != idSize || !plain([]byte(id)) || id[19] != '8' {
			t.Errorf("%s at %d is %q", brief, nanos, id)
		}
	})
	for _, id := range []string{"", "0190ffff-0000-7000-8000-000000000001", "123456789", "12345678901", "12345678+9", "12345678/9", "1234567 90", "12345678=="} {
		if got := wholeID(id, math.MaxInt64); got != id {
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
		`{"i":"AAAAAAAAAA"}`:                     `{"i":"AAAAAAAAAA"}`,
		`{"i":"AAAAAAAAAA","i":5,"t":"x"}`:       `{"i":"AAAAAAAAAA","i":5,"t":"x"}`,
		`{"i":"","i":"AAAAAAAAAA","t":17,"g":5}`: `{"id":"","id":"AAAAAAAAAA","time":"1970-01-01T00:00:00.000000017Z","arguments_digest":5,"kind":"call","event":"decision"}`,
	} {
		if long := longText([]byte(text)); string(long) != want || !json.Valid(long) {
			t.Errorf("%s becomes\n%s, want\n%s", text, long, want)
		}
	}
}

// TestBriefTime checks that the time of a brief entry is found, for chunks that are made from files.
func TestBriefTime(t *testing.T) {
	e := intent("create_issue")
	Name(e, []byte("{}"), new(Room))
	outcome := plainOutcome(e)
	alone := &storage.AuditEntry{ID: e.ID, At: e.At, Kind: storage.AuditCall, Event: "decision", Outcome: outcome.Outcome}
	for _, text := range [][]byte{appendOwnOf(nil, e), appendEntry(nil, alone)} {
		if nanos, ok := shortNanos(text); !ok || nanos != e.At.UnixNano() {
			t.Errorf("%s: %d, %v", text, nanos, ok)
		}
	}
}

// TestBriefOutcomes checks that outcomes have the full ids of their intents, in a shared record and alone.
func TestBriefOutcomes(t *testing.T) {
	for _, n := range []int{1, 2, maxOutcomes + 1} {
		root, store := t.TempDir(), new(memory)
		j := openJournal(t, testOptions(t, root))
		want := make(map[string]bool)
		var intents []*storage.AuditEntry
		for range n {
			e := intent("create_issue")
			Name(e, []byte("{}"), new(Room))
			if err := j.Append(acme, e); err != nil {
				t.Fatal(err)
			}
			want[wholeID(e.ID, e.At.UnixNano())] = true
			intents = append(intents, e)
		}
		for i, e := range intents {
			o := plainOutcome(e)
			o.Duration = time.Duration(i) * time.Second / 3
			o.At = e.At.Add(o.Duration)
			j.Outcome(acme, o)
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, _ := completed(t, root); len(got) != n || len(want) != n {
			t.Errorf("%d outcomes of %d calls, want %d", len(got), len(want), n)
		} else {
			for _, id := range got {
				if !want[id] {
					t.Errorf("an outcome of %s, which is no call", id)
				}
			}
		}
		if err := newShipper(j, store).ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantClean(t, root, store)
		rows, err := Query(t.Context(), store, Filter{OrganizationID: acme, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Outcome: "ok"}, storage.PageRequest{Number: 1})
		if err != nil || rows.Total != n {
			t.Errorf("%d of %d calls have an outcome, %v", rows.Total, n, err)
		}
		for _, row := range rows.Items {
			if !want[row.ID] || row.ArgumentsDigest != fmt.Sprintf("%x", sha256.Sum256([]byte("{}"))) {
				t.Errorf("%+v", row)
			}
		}
	}
}
