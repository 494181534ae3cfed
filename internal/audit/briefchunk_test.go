package audit

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// TestBriefChunk checks that the texts of a chunk are read unchanged, with their hashes, from compressed and from raw
// chunks.
func TestBriefChunk(t *testing.T) {
	text := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf(`{"I":"%s","t":%d%s`, rapid.StringMatching(`[A-Za-z0-9_-]{10}`).Draw(t, "id"), rapid.Int64().Draw(t, "nanos"), rapid.StringMatching(`(,"o":"[ab]{0,5}")?(,"g":"[a-z]{0,43}")?`).Draw(t, "rest"))
		}),
		rapid.SampledFrom([]string{
			``, `{`, `{"I":"`, `{"I":"AAAAAAAAAA","t":`, `{"I":"AAAAAAAAAA","t":0795332000123456789`, `{"I":"AAAAAAAAAA","t":9995332000123456789`,
			`{"I":"AAAAAAAAAA","t":179533200012345678x`, `{"I":"AAAAAAAAAA","t":17953320001234567890`, `{"I":"\"\"\"\"\"","t":1795332000123456789`,
			`{"I":"AAAAAAAAAA","t":8999999999999999999,"o":"x"`, `{"i":"AAAAAAAAAA","t":1795332000123456789}`,
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		w := newChunk("n", "00000001", acme, new([32]byte), 1, nil)
		chain := storage.AuditChain{OrganizationID: acme, Node: "n", Segment: "00000001"}
		parts := []*shared{nil, newShared([]byte(`{"u":"a"}`)), newShared([]byte(`{"u":"b"}`))}
		var want []string
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			r := record{text: []byte(text.Draw(t, "text")), shared: rapid.SampledFrom(parts).Draw(t, "part")}
			if !bytes.HasPrefix(r.text, []byte(sharingStart)) {
				r.shared = nil
			}
			r.hash, _ = nextOf(&chain, &r, nil)
			r.sequence = chain.Sequence
			w.add(&r, nanosOf(r.text))
			want = append(want, string(r.whole()))
		}
		c, _ := w.finish(nil)
		raw := c
		raw.Data = w.body
		for _, c := range []storage.AuditChunk{c, raw} {
			records, err := ReadChunk(&c)
			// A malformed text can be split at another place when its hash is computed. So the texts are compared.
			if err != nil && !errors.Is(err, ErrTampered) || len(records) != len(want) {
				t.Fatalf("%d records of %d, %v", len(records), len(want), err)
			}
			for i, r := range records {
				if string(r.Text) != want[i] {
					t.Fatalf("%q is read as %q", want[i], r.Text)
				}
			}
		}
	})
}

// TestBriefChunkRoom checks that a crafted chunk takes no more memory than the bound.
func TestBriefChunkRoom(t *testing.T) {
	w := newChunk("n", "00000001", acme, new([32]byte), 1, nil)
	for i := range 3 {
		text := fmt.Sprintf(`{"I":"AAAAAAAAAA","t":1795332000123456789,"o":"%s"`, strings.Repeat("x", 1000))
		w.add(&record{sequence: int64(i) + 1, text: []byte(text)}, math.MaxInt64)
	}
	reader := chunkReader{body: w.body[bodyStart+64:], format: chunkFormat, room: 1500}
	for i := range 3 {
		if _, _, ok := reader.next(); ok != (i < 2) {
			t.Errorf("record %d: %v", i, ok)
		}
	}
}

// TestManyRecords checks that a chunk with more records than allowed takes no more memory than the bound.
func TestManyRecords(t *testing.T) {
	c := storage.AuditChunk{Data: append([]byte{chunkFormat}, s2.Encode(nil, make([]byte, maxChunk/2))...)}
	if records, err := ReadChunk(&c); len(records) != maxRecords || !errors.Is(err, ErrTampered) {
		t.Errorf("%d records, %v", len(records), err)
	}
}

// TestRawChunk checks that a large chunk is stored raw when it cannot be made shorter, and compressed when it can. Both
// are read, and an edit of either is found.
func TestRawChunk(t *testing.T) {
	for _, c := range []struct {
		name      string
		arguments string
		want      byte
	}{
		{"digests", "", rawChunkFormat},
		{"arguments", `{"text":"` + strings.Repeat("the same ", 20) + `"}`, chunkFormat},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, store := t.TempDir(), new(memory)
			j := openJournal(t, testOptions(t, root))
			for n := range 2000 {
				e := intent("create_issue")
				Name(e, []byte(fmt.Sprint(n)), new(Room))
				e.Arguments = []byte(c.arguments)
				if err := j.Append(acme, e); err != nil {
					t.Fatal(err)
				}
			}
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			if report := wantClean(t, root, store); report.Records != 2000 || store.chunks[0].Data[0] != c.want {
				t.Errorf("%d records, a chunk of format %d", report.Records, store.chunks[0].Data[0])
			}
			if c.want == rawChunkFormat {
				data := bytes.Clone(store.chunks[0].Data)
				written, err := ReadChunk(&store.chunks[0])
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range []int{1, 40, 70, 80, 1000, 1001, 1002, 1003, len(data) - 20} {
					store.chunks[0].Data = bytes.Clone(data)
					store.chunks[0].Data[at] ^= 1
					// Some facts have two spellings, such as the reference to an earlier record with the same shared part.
					read, err := ReadChunk(&store.chunks[0])
					same := err == nil && reflect.DeepEqual(read, written)
					if found := len(verify(t, root, store)) > 0; found == same {
						t.Errorf("an edit of byte %d: the same records are read: %v, it is found: %v", at, same, found)
					}
				}
			}
		})
	}
}
