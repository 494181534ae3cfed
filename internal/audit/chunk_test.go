package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/storage"
)

// TestCutBrief checks that cutBrief splits each text that begins with a brief id and a time, and no other text.
func TestCutBrief(t *testing.T) {
	const start, nanos = `{"I":"AAAAAAAAAA","t":`, "1795332000123456789"
	for text, want := range map[string]bool{
		start + nanos:                    true,
		start + nanos + `,"o":"x"`:       true,
		start + "8999999999999999999":    true,
		start + "1000000000000000000":    true,
		start + nanos[:18]:               false,
		start + "0" + nanos[1:]:          false,
		start + "9" + nanos[1:]:          false,
		start + nanos[:18] + ",":         false,
		start + nanos[:9] + "/" + nanos:  false,
		start + nanos[:9] + ":" + nanos:  false,
		`{"i":"AAAAAAAAAA","t":` + nanos: false,
		`{"I":"AAAAAAAAAAxxxxxx` + nanos: false,
		"":                               false,
	} {
		id, at, rest, ok := cutBrief([]byte(text))
		if ok != want {
			t.Errorf("%s is cut: %v", text, ok)
		}
		if again := sharingStart + string(id) + shortTime + fmt.Sprint(at) + string(rest); ok && again != text {
			t.Errorf("%s is put together again as %s", text, again)
		}
	}
}

// TestBriefRepeats checks that bytes which the record before has too are not written again, eight bytes at a time.
func TestBriefRepeats(t *testing.T) {
	for rest, want := range map[string]int{"": 0, "1234567": 0, "12345678": 8, "123456789": 8, "1234567812345678": 16, "1234567x": 0} {
		var p briefPart
		mark, id := make([]byte, hashMark), make([]byte, briefSize)
		p.append(nil, briefKind, mark, id, 1, []byte("12345678123456781234"))
		second := p.append(nil, briefKind, mark, id, 1, []byte(rest))
		if got := 1 + hashMark + briefSize + 1 + 1 + len(rest) - len(second); got != want {
			t.Errorf("%d bytes of %q are repeated, want %d", got, rest, want)
		}
	}
}

// TestChunkReader checks that crafted records are refused, and that records just within the bounds are read.
func TestChunkReader(t *testing.T) {
	number := func(n uint64) string { return string(binary.AppendUvarint(nil, n)) }
	const mark, id, endless = "mark", "AAAAAAAAAA", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	plain := func(text string) string { return number(4*uint64(len(text))) + mark + text }
	sharing := func(text, rest string) string { return number(4*uint64(len(text))|sharingKind) + mark + text + rest }
	brief := func(left int, rest string) string { return number(4*uint64(left)|briefKind) + mark + id + rest }
	const begun = sharingStart + id + shortTime
	for name, c := range map[string]struct {
		body  string
		room  int
		texts []string // the texts that are read before the end or the error
		whole bool
	}{
		"texts":                          {plain("one") + plain("") + plain("three"), 0, []string{"one", "", "three"}, true},
		"no number":                      {endless, 0, nil, false},
		"no mark":                        {number(0) + "mar", 0, nil, false},
		"no text":                        {number(4*4) + mark + "one", 0, nil, false},
		"a shared part":                  {sharing("x", "\x00"+number(2)+"{}"), 9, []string{`x,"0":{}}`}, true},
		"and again":                      {sharing("x", "\x00"+number(2)+"{}") + plain("-") + sharing("y", number(2)), 9, []string{`x,"0":{}}`, "-", `y,"0":{}}`}, true},
		"without room":                   {sharing("x", "\x00"+number(2)+"{}"), 2, nil, false},
		"with just so much":              {sharing("x", "\x00"+number(2)+"{}"), 3, []string{`x,"0":{}}`}, true},
		"that is empty":                  {sharing("x", "\x00"+number(0)), 9, nil, false},
		"of the record itself":           {sharing("x", "\x00"), 9, nil, false},
		"of one that has none":           {plain("-") + sharing("y", number(1)), 9, []string{"-"}, false},
		"of one before all":              {sharing("x", "\x00"+number(2)+"{}") + sharing("y", number(2)), 9, []string{`x,"0":{}}`}, false},
		"of no number":                   {sharing("x", endless), 9, nil, false},
		"of no length":                   {sharing("x", "\x00"+endless), 9, nil, false},
		"of a length behind the end":     {sharing("x", "\x00"+number(3)+"{}"), 9, nil, false},
		"in brief":                       {brief(1, "\x02\x00}"), 0, []string{begun + "1}"}, true},
		"and what it repeats":            {brief(4, "\x02\x00abc}") + brief(1, "\x02\x03}"), 3, []string{begun + "1abc}", begun + "2abc}"}, true},
		"and one byte too many":          {brief(4, "\x02\x00abc}") + brief(1, "\x02\x03}"), 2, []string{begun + "1abc}"}, false},
		"repeating more than there is":   {brief(4, "\x02\x00abc}") + brief(1, "\x02\x05}"), 99, []string{begun + "1abc}"}, false},
		"in brief, without an id":        {number(4|briefKind) + mark + id[1:], 99, nil, false},
		"in brief, without a time":       {brief(0, ""), 99, nil, false},
		"in brief, with an endless time": {brief(0, endless), 99, nil, false},
		"in brief, repeating no number":  {brief(0, "\x02"+endless), 99, nil, false},
		"in brief, without what is left": {brief(2, "\x02\x00}"), 99, nil, false},
	} {
		reader := chunkReader{body: []byte(c.body), format: chunkFormat, room: c.room}
		var texts []string
		whole := true
		for len(reader.body) > 0 && whole {
			begins, text, ok := reader.next()
			if whole = ok; ok {
				texts = append(texts, string(text))
			}
			if ok && string(begins) != mark {
				t.Errorf("%s: the hash begins with %q", name, begins)
			}
		}
		if strings.Join(texts, "\n") != strings.Join(c.texts, "\n") || len(texts) != len(c.texts) || whole != c.whole {
			t.Errorf("%s: %q is read, to the end: %v", name, texts, whole)
		}
	}
}

// TestReadChunkTold checks that an error in a chunk names the record with the error.
func TestReadChunkTold(t *testing.T) {
	made := func() (storage.AuditChunk, []byte) {
		w := newChunk("n", "00000001", acme, new([32]byte), 3, nil)
		chain := chainOf(acme, "n", "00000001")
		chain.Sequence = 2
		for range 3 {
			r := record{text: appendEntry(nil, intent("create_issue"))}
			r.hash, _ = nextOf(&chain, &r, nil)
			r.sequence = chain.Sequence
			w.add(&r, 17)
		}
		c, _ := w.finish(nil)
		return c, bytes.Clone(w.body[bodyStart:])
	}
	for name, c := range map[string]struct {
		change   func(c *storage.AuditChunk, body []byte) []byte
		sequence int64 // 0: the chunk has no error
		records  int
	}{
		"whole":                {func(_ *storage.AuditChunk, body []byte) []byte { return body }, 0, 3},
		"another last hash":    {func(_ *storage.AuditChunk, body []byte) []byte { body[33] ^= 1; return body }, 5, 3},
		"another hash before":  {func(_ *storage.AuditChunk, body []byte) []byte { body[1] ^= 1; return body }, 3, 3},
		"another mark":         {func(_ *storage.AuditChunk, body []byte) []byte { body[64+3] ^= 1; return body }, 3, 3},
		"fewer than it says":   {func(c *storage.AuditChunk, body []byte) []byte { c.Last++; return body }, 5, 3},
		"cut off":              {func(_ *storage.AuditChunk, body []byte) []byte { return body[:len(body)-1] }, 5, 2},
		"edited, and cut off":  {func(_ *storage.AuditChunk, body []byte) []byte { body[64+3] ^= 1; return body[:len(body)-1] }, 3, 2},
		"others than it says":  {func(c *storage.AuditChunk, body []byte) []byte { c.First, c.Last = 4, 6; return body }, 4, 3},
		"of another node":      {func(c *storage.AuditChunk, body []byte) []byte { c.Node = "m"; return body }, 0, 3}, // it is not the first of its chain
		"without any":          {func(c *storage.AuditChunk, body []byte) []byte { c.Last = 2; return body[:64] }, 2, 0},
		"shorter than hashes":  {func(_ *storage.AuditChunk, body []byte) []byte { return body[:63] }, 3, 0},
		"edited in two places": {func(_ *storage.AuditChunk, body []byte) []byte { body[64+3] ^= 1; body[len(body)-1] ^= 1; return body }, 3, 3},
	} {
		for _, format := range []byte{chunkFormat, rawChunkFormat} {
			chunk, body := made()
			if body = c.change(&chunk, body); format == chunkFormat {
				body = s2.Encode(nil, body)
			}
			chunk.Data = append([]byte{format}, body...)
			records, err := ReadChunk(&chunk)
			var wrong *RecordError
			if errors.As(err, &wrong) != (c.sequence > 0) || wrong != nil && (wrong.Sequence != c.sequence || !errors.Is(err, ErrTampered)) || len(records) != c.records {
				t.Errorf("%s: %d records, %v", name, len(records), err)
			}
		}
	}
}

// TestUnpack checks that data of no chunk, or too much data, is not unpacked.
func TestUnpack(t *testing.T) {
	packed := func(n int) []byte { return s2.Encode(nil, make([]byte, n)) }
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"nothing":                 {nil, false},
		"a format before all":     {append([]byte{longChunkFormat - 1}, packed(64)...), false},
		"the first format":        {append([]byte{longChunkFormat}, packed(64)...), true},
		"a packed one":            {append([]byte{chunkFormat}, packed(64)...), true},
		"one that is too short":   {append([]byte{chunkFormat}, packed(63)...), false},
		"the longest":             {append([]byte{chunkFormat}, packed(maxChunk)...), true},
		"one that is too long":    {append([]byte{chunkFormat}, packed(maxChunk+1)...), false},
		"one that is not packed":  {append([]byte{chunkFormat}, bytes.Repeat([]byte{0xff}, 99)...), false},
		"one that is cut off":     {append([]byte{chunkFormat}, packed(6400)[:5]...), false},
		"a raw one":               {append([]byte{rawChunkFormat}, make([]byte, 64)...), true},
		"a raw one, too short":    {append([]byte{rawChunkFormat}, make([]byte, 63)...), false},
		"the longest raw one":     {append([]byte{rawChunkFormat}, make([]byte, maxChunk)...), true},
		"a raw one, too long":     {append([]byte{rawChunkFormat}, make([]byte, maxChunk+1)...), false},
		"a format behind all":     {append([]byte{rawChunkFormat + 1}, packed(64)...), false},
		"a format without a body": {[]byte{rawChunkFormat}, false},
	} {
		body, err := unpack(c.data)
		if (err == nil) != c.ok || (len(body) > 0) != c.ok || err != nil && !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
	}
}

// TestChunkWriter checks that a chunk stays within its bounds, and has a shared part only once.
func TestChunkWriter(t *testing.T) {
	w := newChunk("n", "00000001", acme, new([32]byte), 1, nil)
	start := len(w.body)
	s := newShared([]byte(`{"u":"a"}`))
	for sequence := range int64(2) {
		w.add(&record{sequence: sequence + 1, text: []byte(`{"I":"x"`), shared: s}, 17+sequence)
	}
	const own, part = len(`{"I":"x"`), len(`{"u":"a"}`)
	if w.whole != 2*(own+part) || len(w.body)-start != 2*(1+hashMark+own)+2+part+1 || w.from != 17 || w.to != 18 || w.chunk.Last != 2 {
		t.Errorf("%d bytes whole, %d in the chunk, %+v", w.whole, len(w.body)-start, w.chunk)
	}
	for _, c := range []struct {
		body, whole int
		full        bool
	}{{maxBatch, maxWhole, false}, {maxBatch + 1, 0, true}, {1, maxWhole + 1, true}} {
		if w := (&chunkWriter{body: make([]byte, c.body), whole: c.whole}); w.full() != c.full {
			t.Errorf("%d bytes, %d of them whole: full: %v", c.body, c.whole, !c.full)
		}
	}
}

// TestScratch checks that the scratch buffer of one chunk is used again for the next one.
func TestScratch(t *testing.T) {
	w := newChunk("n", "00000001", acme, new([32]byte), 1, nil)
	_, made := w.finish(nil)
	most := s2.MaxEncodedLen(len(w.body) - bodyStart)
	if cap(made) < most {
		t.Fatalf("%d bytes are kept of %d", cap(made), most)
	}
	fitting := make([]byte, most)
	if _, used := w.finish(fitting); &used[:1][0] != &fitting[0] {
		t.Error("what is large enough is not used")
	}
}
