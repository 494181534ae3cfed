package audit

import (
	"errors"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// headSize is the size of the beginning of a chunk's body.
var headSize = len(format.AppendChunkHead(nil, new([32]byte)))

// unpacked returns the body of a chunk.
func unpacked(t testing.TB, c *storage.AuditChunk) []byte {
	t.Helper()
	body, err := s2.Decode(nil, c.Data[1:])
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestReadChunkTold checks that an error in a chunk names the record with the error.
func TestReadChunkTold(t *testing.T) {
	made := func() (storage.AuditChunk, []byte) {
		w := newChunk("n", "00000001", acme, new([32]byte), 3)
		chain := format.ChainOf(acme, "n", "00000001")
		chain.Sequence = 2
		for range 3 {
			text := format.AppendEntry(nil, intent("create_issue"))
			hash, _ := format.Next(&chain, text, nil)
			w.add(chain.Sequence, &hash, text, 17)
		}
		c, _ := w.finish(nil)
		return c, unpacked(t, &c)
	}
	for name, c := range map[string]struct {
		change   func(c *storage.AuditChunk, body []byte) []byte
		sequence int64 // 0: the chunk has no error
		records  int
	}{
		"whole":               {func(_ *storage.AuditChunk, body []byte) []byte { return body }, 0, 3},
		"another last hash":   {func(_ *storage.AuditChunk, body []byte) []byte { body[headSize-1] ^= 1; return body }, 5, 3},
		"another hash before": {func(_ *storage.AuditChunk, body []byte) []byte { body[2] ^= 1; return body }, 3, 3},
		"another mark":        {func(_ *storage.AuditChunk, body []byte) []byte { body[headSize+3] ^= 1; return body }, 3, 3},
		"fewer than it says":  {func(c *storage.AuditChunk, body []byte) []byte { c.Last++; return body }, 5, 3},
		"cut off":             {func(_ *storage.AuditChunk, body []byte) []byte { return body[:len(body)-1] }, 5, 2},
		"edited, and cut off": {func(_ *storage.AuditChunk, body []byte) []byte { body[headSize+3] ^= 1; return body[:len(body)-1] }, 3, 2},
		"others than it says": {func(c *storage.AuditChunk, body []byte) []byte { c.First, c.Last = 4, 6; return body }, 4, 3},
		"of another node":     {func(c *storage.AuditChunk, body []byte) []byte { c.Node = "m"; return body }, 0, 3}, // it is not the first of its chain
		"without any":         {func(c *storage.AuditChunk, body []byte) []byte { c.Last = 2; return body[:headSize] }, 3, 0},
		"without any, and whole": {func(c *storage.AuditChunk, body []byte) []byte {
			c.Last = 2
			format.SetLast(body, new([32]byte))
			return body[:headSize]
		}, 3, 0},
		"shorter than hashes": {func(_ *storage.AuditChunk, body []byte) []byte { return body[:headSize-1] }, 3, 0},
		"edited in two places": {func(_ *storage.AuditChunk, body []byte) []byte {
			body[headSize+3] ^= 1
			body[len(body)-1] ^= 1
			return body
		}, 3, 3},
	} {
		chunk, body := made()
		chunk.Data = format.AppendChunk(nil, c.change(&chunk, body))
		records, err := former.ReadChunk(&chunk)
		var wrong *format.RecordError
		if errors.As(err, &wrong) != (c.sequence > 0) || wrong != nil && (wrong.Sequence != c.sequence || !errors.Is(err, format.ErrTampered)) || len(records) != c.records {
			t.Errorf("%s: %d records, %v", name, len(records), err)
		}
	}
}

// TestChunkWriter checks that a chunk knows its records, and when the next record goes into another one.
func TestChunkWriter(t *testing.T) {
	w := newChunk("n", "00000001", acme, new([32]byte), 1)
	for sequence := range int64(2) {
		w.add(sequence+1, new([32]byte), []byte(`{"i":"x"}`), 17+sequence)
	}
	if w.from != 17 || w.to != 18 || w.chunk.Last != 2 {
		t.Errorf("%+v", w.chunk)
	}
	for size, full := range map[int]bool{maxBatch: false, maxBatch + 1: true} {
		if w := (&chunkWriter{body: new(make([]byte, size))}); w.full() != full {
			t.Errorf("%d bytes: full: %v", size, !full)
		}
	}
}

// TestScratch checks that the scratch buffer of one chunk is used again for the next one.
func TestScratch(t *testing.T) {
	_, made := newChunk("n", "00000001", acme, new([32]byte), 1).finish(nil)
	if _, used := newChunk("n", "00000001", acme, new([32]byte), 1).finish(made); &used[:1][0] != &made[:1][0] {
		t.Error("what is large enough is not used")
	}
}
