package audit

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"testing"
)

// TestDigestsAreBounded asks for the hashes of more shared parts than are kept.
func TestDigestsAreBounded(t *testing.T) {
	j := &Journal{digests: make(map[string]*[sha256.Size]byte)}
	for range 2 {
		for i := range maxDigests + 1 {
			part := []byte(strconv.Itoa(i))
			if want := sha256.Sum256(part); !bytes.Equal(j.digestOf(part), want[:]) {
				t.Fatalf("part %d has another hash", i)
			}
			if len(j.digests) > maxDigests {
				t.Fatalf("%d hashes are kept", len(j.digests))
			}
		}
	}
}
