package seal

import (
	"bytes"
	"testing"
	"time"
)

// TestTagger checks that a tag is valid for its message, purpose and gateway alone, and stays so when the master key
// and the data key are rotated.
func TestTagger(t *testing.T) {
	old, current, store := newMaster(t), newMaster(t), &memoryKeys{}
	one, err := OpenKeyring(t.Context(), []MasterKey{old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("a place in a chain")
	tag := one.MAC("a").AppendMAC([]byte("before"), message)[len("before"):]
	if len(tag) != MACSize || !one.MAC("a").CheckMAC(message, tag) {
		t.Fatalf("%x", tag)
	}
	if one.MAC("b").CheckMAC(message, tag) || newKeyring(t).MAC("a").CheckMAC(message, tag) || one.MAC("a").CheckMAC(message[1:], tag) {
		t.Error("a tag is good for another purpose, gateway or message")
	}
	for i := range tag {
		changed := bytes.Clone(tag)
		changed[i] ^= 1
		if one.MAC("a").CheckMAC(message, changed) {
			t.Errorf("good with another byte %d", i)
		}
	}
	for _, other := range [][]byte{nil, tag[:MACSize-1], append(bytes.Clone(tag), 0), make([]byte, MACSize)} {
		if one.MAC("a").CheckMAC(message, other) {
			t.Errorf("%x is good", other)
		}
	}
	for i := range store.keys {
		if store.keys[i], _, err = Rewrap(store.keys[i], []MasterKey{current, old}); err != nil {
			t.Fatal(err)
		}
	}
	// One that has not settled is not used yet.
	if err := store.AddDataKey(t.Context(), NewDataKey(current, 2, time.Now())); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	two, err := OpenKeyring(t.Context(), []MasterKey{current}, store, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	tags := two.MAC("a")
	if !tags.CheckMAC(message, tag) || !bytes.Equal(tags.AppendMAC(nil, message), tag) {
		t.Error("another tag under the same data key")
	}
	now = now.Add(2 * settleTime)
	if newer := tags.AppendMAC(nil, message); newer[3] != 2 || !tags.CheckMAC(message, newer) || !tags.CheckMAC(message, tag) {
		t.Errorf("%x", newer)
	}
}
