package seal

import (
	"bytes"
	"testing"
	"time"
)

func TestSigner(t *testing.T) {
	old, current, store := newMaster(t), newMaster(t), &memoryKeys{}
	one, err := OpenKeyring(t.Context(), []MasterKey{old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte("what is said")
	signature := one.Signer("a").Sign(message)
	if !one.Signer("a").Verify(message, signature) || !one.Signer("a").Public().Verify(message, signature) {
		t.Error("a good signature is refused")
	}
	if one.Signer("b").Verify(message, signature) || newKeyring(t).Signer("a").Verify(message, signature) {
		t.Error("another purpose's or another gateway's signature is taken")
	}
	for i := range signature {
		changed := bytes.Clone(signature)
		changed[i] ^= 1
		if one.Signer("a").Verify(message, changed) {
			t.Errorf("a change of byte %d is not seen", i)
		}
	}
	if one.Signer("a").Verify([]byte("something else"), signature) || one.Signer("a").Verify(message, signature[:20]) || one.Signer("a").Verify(message, nil) {
		t.Error("a signature over something else is taken")
	}
	// Signatures by an older key stay valid, and new statements are signed with the newer one.
	if err := store.AddDataKey(t.Context(), NewDataKey(current, 2, time.Now().Add(-settleTime))); err != nil {
		t.Fatal(err)
	}
	two, err := OpenKeyring(t.Context(), []MasterKey{current, old}, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if !two.Signer("a").Verify(message, signature) {
		t.Error("an older signature is refused")
	}
	if one.Signer("a").Verify(message, two.Signer("a").Sign(message)) {
		t.Error("the older key signs still")
	}
}
