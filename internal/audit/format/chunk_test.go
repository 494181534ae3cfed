package format

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestChunk checks that the records of a chunk are read unchanged.
func TestChunk(t *testing.T) {
	previous, last := [hashSize]byte{1}, [hashSize]byte{2}
	body := AppendChunkHead(nil, &previous)
	texts := []string{`{"i":"x"}`, "{}", `{"I":"AAAAAAAAAA","t":1,"0":{"u":"a"}}`}
	for i, text := range texts {
		body = AppendChunkRecord(body, &[hashSize]byte{byte(i), 7, 8, 9, 10}, []byte(text))
	}
	SetLast(body, &last)
	data := AppendChunk([]byte("before"), body)[len("before"):]
	gotPrevious, gotLast, records, err := OpenChunk(data)
	if err != nil || gotPrevious != previous || gotLast != last {
		t.Fatalf("%x, %x, %v", gotPrevious, gotLast, err)
	}
	for i, want := range texts {
		if mark, text, ok := records.Next(); !ok || string(text) != want || !bytes.Equal(mark, []byte{byte(i), 7, 8, 9}) {
			t.Errorf("record %d is %q, its mark %x, %v", i, text, mark, ok)
		}
	}
	if records.More() {
		t.Error("there is more")
	}
}

// TestOpenChunk checks that data of no chunk, or too much data, is not read, and that crafted records are refused.
func TestOpenChunk(t *testing.T) {
	head := AppendChunkHead(nil, new([hashSize]byte))
	record := AppendChunkRecord(nil, new([hashSize]byte), []byte("{}"))
	packed := func(parts ...[]byte) []byte { return AppendChunk(nil, slices.Concat(parts...)) }
	for name, c := range map[string]struct {
		data    []byte
		opens   bool
		records int // that are read before the end or the error
		whole   bool
	}{
		"nothing":               {nil, false, 0, false},
		"a format before it":    {append([]byte{ChunkFormat - 1}, packed(head)[1:]...), false, 0, false},
		"a format behind it":    {append([]byte{ChunkFormat + 1}, packed(head)[1:]...), false, 0, false},
		"a format alone":        {[]byte{ChunkFormat}, false, 0, false},
		"bytes that are no s2":  {append([]byte{ChunkFormat}, bytes.Repeat([]byte{0xff}, 99)...), false, 0, false},
		"cut off":               {packed(head)[:5], false, 0, false},
		"the longest":           {packed(head, make([]byte, MaxChunk-len(head))), true, 0, false},
		"one that is too long":  {packed(head, make([]byte, MaxChunk-len(head)+1)), false, 0, false},
		"no beginning":          {packed(head[:len(head)-1]), false, 0, false},
		"another beginning":     {packed(head[len(head)/2:], head[:len(head)/2]), false, 0, false},
		"no record":             {packed(head), true, 0, true},
		"two records":           {packed(head, record, record), true, 2, true},
		"a record cut off":      {packed(head, record, record[:len(record)-1]), true, 1, false},
		"a record without text": {packed(head, record[:2+MarkSize], record), true, 0, false},
		"a field of segments":   {packed(head, record, appendField(nil, tagSequence, "\x01")), true, 1, false},
		"an unknown field":      {packed(head, record, []byte{99, 0}), true, 1, false},
	} {
		_, _, records, err := OpenChunk(c.data)
		if (err == nil) != c.opens || err != nil && !errors.Is(err, ErrTampered) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		n, whole := 0, true
		for whole && records.More() {
			if _, _, whole = records.Next(); whole {
				n++
			}
		}
		if n != c.records || whole != c.whole {
			t.Errorf("%s: %d records, to the end: %v", name, n, whole)
		}
	}
}

// FuzzOpenChunk checks that any bytes are read without a panic, and that their records are written as they were.
func FuzzOpenChunk(f *testing.F) {
	head, record := AppendChunkHead(nil, &[hashSize]byte{1}), AppendChunkRecord(nil, &[hashSize]byte{2}, []byte(`{"i":"x"}`))
	f.Add(slices.Concat(head, record, record))
	f.Add(head[:9])
	f.Add(slices.Concat(head, record[:9]))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, _, _ = OpenChunk(body)
		previous, last, records, err := OpenChunk(AppendChunk(nil, body))
		if err != nil {
			return
		}
		written := AppendChunkHead(nil, &previous)
		SetLast(written, &last)
		for records.More() {
			mark, text, ok := records.Next()
			if !ok {
				return
			}
			var hash [hashSize]byte
			copy(hash[:], mark)
			written = AppendChunkRecord(written, &hash, text)
		}
		if !bytes.Equal(written, body) {
			t.Errorf("%q is written %q", body, written)
		}
	})
}

// TestManyRecords checks that a chunk with more records than allowed takes no more memory than the bound.
func TestManyRecords(t *testing.T) {
	body := AppendChunkHead(nil, new([32]byte))
	one := AppendChunkRecord(nil, new([32]byte), []byte("{}"))
	c := storage.AuditChunk{Data: AppendChunk(nil, append(body, bytes.Repeat(one, maxRecords+1)...))}
	if records, err := ReadChunk(&c, OpenChunk); len(records) != maxRecords || !errors.Is(err, ErrTampered) {
		t.Errorf("%d records, %v", len(records), err)
	}
}
