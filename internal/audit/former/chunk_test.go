package former

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/audit/format"
)

const briefEnd = len(format.SharingStart) + briefSize + len(briefTime)

// cutBrief splits a text that begins with a brief id and a time. It is not ok for other texts, which are stored
// unchanged.
func cutBrief(text []byte) (id []byte, nanos int64, rest []byte, ok bool) {
	const at = len(format.SharingStart) + briefSize
	if len(text) < briefHead || string(text[:len(format.SharingStart)]) != format.SharingStart || string(text[at:briefEnd]) != briefTime {
		return nil, 0, nil, false
	}
	if text[briefEnd] < '1' || text[briefEnd] > '8' { // no leading zero, and at most 63 bits
		return nil, 0, nil, false
	}
	for _, c := range text[briefEnd:briefHead] {
		if c < '0' || c > '9' {
			return nil, 0, nil, false
		}
		nanos = 10*nanos + int64(c-'0')
	}
	return text[len(format.SharingStart):at], nanos, text[briefHead:], true
}

// append appends a brief record, as the former writer did it.
func (p *briefPart) append(b []byte, kind uint64, mark, id []byte, nanos int64, rest []byte) []byte {
	same := 0
	// Eight bytes are compared at a time. The last few are not worth a comparison.
	for most := min(len(rest), len(p.rest)) - 8; same <= most && binary.LittleEndian.Uint64(rest[same:]) == binary.LittleEndian.Uint64(p.rest[same:]); {
		same += 8
	}
	b = binary.AppendUvarint(b, 4*uint64(len(rest)-same)|kind)
	b = append(append(b, mark...), id...)
	b = binary.AppendVarint(b, nanos-p.nanos)
	b = binary.AppendUvarint(b, uint64(same))
	b = append(b, rest[same:]...)
	p.nanos, p.rest = nanos, append(p.rest[:0], rest...)
	return b
}

// written is a record of a chunk.
type written struct{ text, part string }

// chunkOf packs records as the former writer did it.
func chunkOf(packed byte, records []written) []byte {
	body := make([]byte, 2*hashSize)
	at := make(map[string]int)
	var before briefPart
	mark := []byte("mark")
	for i, r := range records {
		kind := uint64(0)
		if r.part != "" {
			kind = sharingKind
		}
		if id, nanos, rest, ok := cutBrief([]byte(r.text)); ok {
			body = before.append(body, kind|briefKind, mark, id, nanos, rest)
		} else {
			body = append(append(binary.AppendUvarint(body, 4*uint64(len(r.text))|kind), mark...), r.text...)
		}
		if first, ok := at[r.part]; ok {
			body = binary.AppendUvarint(body, uint64(i-first))
		} else if r.part != "" {
			body = append(binary.AppendUvarint(append(body, 0), uint64(len(r.part))), r.part...)
			at[r.part] = i
		}
	}
	if packed == briefChunk {
		body = s2.Encode(nil, body)
	}
	return append([]byte{packed}, body...)
}

// TestChunk checks that the texts of a chunk are read unchanged, from compressed and from raw chunks.
func TestChunk(t *testing.T) {
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
		var records []written
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			records = append(records, written{text.Draw(t, "text"), rapid.SampledFrom([]string{"", `{"u":"a"}`, `{"u":"b"}`}).Draw(t, "part")})
		}
		for _, packed := range []byte{briefChunk, rawChunk} {
			_, _, reader, err := OpenChunk(chunkOf(packed, records))
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range records {
				want := r.text
				if r.part != "" {
					want = string(format.AppendShared([]byte(r.text), r.part))
				}
				if mark, text, ok := reader.Next(); !ok || string(text) != want || string(mark) != "mark" {
					t.Fatalf("record %d: %q is read as %q, %v", i, want, text, ok)
				}
			}
			if reader.More() {
				t.Fatal("there is more")
			}
		}
	})
}

// FuzzChunk checks that any bytes are read without a panic and within the bounds.
func FuzzChunk(f *testing.F) {
	records := []written{{`{"I":"AAAAAAAAAA","t":1795332000123456789,"o":"x"`, `{"u":"a"}`}, {`{"i":"x"}`, ""}, {`{"I":"AAAAAAAAAB","t":1795332000123456799,"o":"x"`, `{"u":"a"}`}}
	for _, packed := range []byte{briefChunk, rawChunk} {
		f.Add(chunkOf(packed, records))
	}
	// It repeats more bytes of the record before than that record has.
	repeating := append(make([]byte, 2*hashSize), briefKind, 0, 0, 0, 0, 'A', 'A', 'A', 'A', 'A', 'A', 'A', 'A', 'A', 'A', 0, 200)
	f.Add(append([]byte{rawChunk}, repeating...))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, reader, err := OpenChunk(data)
		if err != nil {
			return
		}
		for size := 0; reader.More(); {
			_, text, ok := reader.Next()
			if !ok {
				return
			}
			if size += len(text); size > 4*format.MaxChunk {
				t.Fatal("more than the bounds allow")
			}
		}
	})
}

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
		if again := format.SharingStart + string(id) + briefTime + fmt.Sprint(at) + string(rest); ok && again != text {
			t.Errorf("%s is put together again as %s", text, again)
		}
	}
}

// TestBriefRepeats checks that bytes which the record before has too are not written again, eight bytes at a time.
func TestBriefRepeats(t *testing.T) {
	for rest, want := range map[string]int{"": 0, "1234567": 0, "12345678": 8, "123456789": 8, "1234567812345678": 16, "1234567x": 0} {
		var p briefPart
		mark, id := make([]byte, format.MarkSize), make([]byte, briefSize)
		p.append(nil, briefKind, mark, id, 1, []byte("12345678123456781234"))
		second := p.append(nil, briefKind, mark, id, 1, []byte(rest))
		if got := 1 + format.MarkSize + briefSize + 1 + 1 + len(rest) - len(second); got != want {
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
	const begun = format.SharingStart + id + briefTime
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
		reader := chunkReader{body: []byte(c.body), format: briefChunk, room: c.room}
		var texts []string
		whole := true
		for reader.More() && whole {
			begins, text, ok := reader.Next()
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

// TestUnpack checks that data of no chunk, or too much data, is not unpacked.
func TestUnpack(t *testing.T) {
	packed := func(n int) []byte { return s2.Encode(nil, make([]byte, n)) }
	for name, c := range map[string]struct {
		data []byte
		ok   bool
	}{
		"nothing":                 {nil, false},
		"a format before all":     {append([]byte{longChunk - 1}, packed(64)...), false},
		"the first format":        {append([]byte{longChunk}, packed(64)...), true},
		"a packed one":            {append([]byte{briefChunk}, packed(64)...), true},
		"one that is too short":   {append([]byte{briefChunk}, packed(63)...), false},
		"the longest":             {append([]byte{briefChunk}, packed(format.MaxChunk)...), true},
		"one that is too long":    {append([]byte{briefChunk}, packed(format.MaxChunk+1)...), false},
		"one that is not packed":  {append([]byte{briefChunk}, bytes.Repeat([]byte{0xff}, 99)...), false},
		"one that is cut off":     {append([]byte{briefChunk}, packed(6400)[:5]...), false},
		"a raw one":               {append([]byte{rawChunk}, make([]byte, 64)...), true},
		"a raw one, too short":    {append([]byte{rawChunk}, make([]byte, 63)...), false},
		"the longest raw one":     {append([]byte{rawChunk}, make([]byte, format.MaxChunk)...), true},
		"a raw one, too long":     {append([]byte{rawChunk}, make([]byte, format.MaxChunk+1)...), false},
		"a format behind all":     {append([]byte{rawChunk + 1}, packed(64)...), false},
		"a format without a body": {[]byte{rawChunk}, false},
	} {
		body, err := unpack(c.data)
		if (err == nil) != c.ok || (len(body) > 0) != c.ok || err != nil && !errors.Is(err, format.ErrTampered) {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
	}
}
