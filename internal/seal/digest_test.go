package seal

import (
	"bytes"
	"testing"
	"time"
)

func TestMAC(t *testing.T) {
	old, current, store := newMaster(t), newMaster(t), &memoryKeys{}
	one, err := OpenKeyring(t.Context(), []MasterKey{old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("what is looked up")
	digest := one.Digester("a").Sum(message)
	if len(digest) != 32 || !bytes.Equal(digest, one.Digester("a").Sum(message)) {
		t.Errorf("%x", digest)
	}
	if bytes.Equal(digest, one.Digester("b").Sum(message)) || bytes.Equal(digest, newKeyring(t).Digester("a").Sum(message)) || bytes.Equal(digest, one.Digester("a").Sum(message[1:])) {
		t.Error("another purpose, gateway or message has the same digest")
	}
	// Values stored under an older key are still found, and new digests are made with the newer one.
	if err := store.AddDataKey(t.Context(), NewDataKey(current, 2, time.Now().Add(-settleTime))); err != nil {
		t.Fatal(err)
	}
	two, err := OpenKeyring(t.Context(), []MasterKey{current, old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	sums := two.Digester("a").Sums(message)
	if len(sums) != 2 || !bytes.Equal(sums[0], two.Digester("a").Sum(message)) || !bytes.Equal(sums[1], digest) || bytes.Equal(sums[0], sums[1]) {
		t.Errorf("%x", sums)
	}
}
