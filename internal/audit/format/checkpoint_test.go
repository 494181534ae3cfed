package format

import (
	"errors"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestReadCheckpoint checks that a checkpoint has one spelling, and a known format.
func TestReadCheckpoint(t *testing.T) {
	const first = `{"format":2,"node":"n","segment":"00000001","number":1,"time":"2026-01-02T03:04:05Z","chains":[]}`
	for data, want := range map[string]bool{
		first: true,
		strings.Replace(first, `"format":2`, `"format":1`, 1):      true,
		strings.Replace(first, `"format":2`, `"format":0`, 1):      false,
		strings.Replace(first, `"format":2`, `"format":3`, 1):      false,
		strings.Replace(first, `"number":1`, `"number":0`, 1):      false,
		strings.Replace(first, `"number":1`, `"number":-1`, 1):     false,
		strings.Replace(first, `"node":`, `"node": `, 1):           false,
		strings.Replace(first, `"chains"`, `"more":1,"chains"`, 1): false,
		first + " ":      false,
		first[:9]:        false,
		"":               false,
		`{"format":"2"}`: false,
		`{"number":"x"}`: false,
	} {
		c, err := ReadCheckpoint([]byte(data))
		if (err == nil) != want || err != nil && (!errors.Is(err, ErrMalformed) || c.Number != 0) || err == nil && c.Number != 1 {
			t.Errorf("%s: %+v, %v", data, c, err)
		}
	}
}

// TestCheckpointHash checks that the hash of a checkpoint covers its data and its signature.
func TestCheckpointHash(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range []storage.AuditCheckpoint{{}, {Data: []byte("a")}, {Signature: []byte("b")}, {Data: []byte("a"), Signature: []byte("b")}} {
		seen[CheckpointHash(&c)] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d hashes of 4", len(seen))
	}
}

// TestSealing checks that a checkpoint of the present format states MACs for its node's records, unless its Found is set.
func TestSealing(t *testing.T) {
	for _, c := range []struct {
		format  int
		found   bool
		sealing bool
	}{{BareCheckpointFormat, false, false}, {BareCheckpointFormat, true, false}, {CheckpointFormat, false, true}, {CheckpointFormat, true, false}} {
		if got := (&Checkpoint{Format: c.format, Found: c.found}).Sealing(); got != c.sealing {
			t.Errorf("%+v", c)
		}
	}
}
