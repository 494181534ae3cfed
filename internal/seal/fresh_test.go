package seal

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// slowKeys takes a tenth of a second for each read.
type slowKeys struct{ countedKeys }

func (s *slowKeys) DataKeys(ctx context.Context) ([]storage.DataKey, error) {
	time.Sleep(100 * time.Millisecond)
	return s.countedKeys.DataKeys(ctx)
}

// TestFreshenTimes checks when keys are read again: when they are 20 s old, in the background; from 40 s on while the
// user waits; and every 5 s while the store does not answer.
func TestFreshenTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(slowKeys)
		k, err := OpenKeyring(t.Context(), []MasterKey{newMaster(t)}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now() // the known keys are as old
		look := func(after time.Duration) (reads int64, waited time.Duration) {
			time.Sleep(time.Until(began.Add(after)))
			before, started := store.reads.Load(), time.Now()
			k.freshen()
			waited = time.Since(started)
			time.Sleep(200 * time.Millisecond)
			return store.reads.Load() - before, waited
		}
		for _, tc := range []struct {
			at     time.Duration
			reads  int64
			waited time.Duration
			answer bool // the store's
		}{
			{0, 0, 0, true},
			{10 * time.Second, 0, 0, true},
			{19 * time.Second, 0, 0, true},
			{20 * time.Second, 1, 0, true},
			{26 * time.Second, 0, 0, true},                         // new again
			{40*time.Second - 1, 0, 0, true},                       // 20 s less than a moment old
			{60*time.Second - 1, 1, 0, false},                      // 40 s less than a moment
			{60 * time.Second, 0, 0, false},                        // asked a moment ago
			{65*time.Second - 1, 1, 100 * time.Millisecond, false}, // 5 s later, and the user waits
			{69 * time.Second, 0, 0, false},                        // less than 5 s
			{70*time.Second - 1, 1, 100 * time.Millisecond, false}, // 5 s
			{75 * time.Second, 1, 100 * time.Millisecond, true},
			{80 * time.Second, 0, 0, true},
			{115 * time.Second, 1, 100 * time.Millisecond, true}, // 40 s old to the moment
		} {
			store.refuses.Store(!tc.answer)
			if reads, waited := look(tc.at); reads != tc.reads || waited != tc.waited {
				t.Errorf("after %v: %d reads, waited %v; want %d, %v", tc.at, reads, waited, tc.reads, tc.waited)
			}
		}
	})
}

// TestSealsHearOfKeys checks that every use for sealing or opening learns of an added key after a while.
func TestSealsHearOfKeys(t *testing.T) {
	for name, use := range map[string]func(k *Keyring, sealed []byte) error{
		"seal": func(k *Keyring, _ []byte) error { _, err := k.Seal(nil, place); return err },
		"open": func(k *Keyring, sealed []byte) error { _, err := k.Open(sealed, place); return err },
		"token": func(k *Keyring, _ []byte) error {
			k.Sealer("session").Seal(nil, nil)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, store := newMaster(t), new(countedKeys)
				k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
				if err != nil {
					t.Fatal(err)
				}
				sealed, err := k.Seal([]byte("x"), place)
				if err != nil {
					t.Fatal(err)
				}
				if err := store.AddDataKey(t.Context(), NewDataKey(m, 2, time.Now())); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				if err := use(k, sealed); err != nil || k.Newest() != 2 {
					t.Errorf("%v; the newest key is %d", err, k.Newest())
				}
			})
		})
	}
}

// TestLearnBounds checks that a key is searched for when it can have been added unnoticed, and no other.
func TestLearnBounds(t *testing.T) {
	for version, reads := range map[uint32]int64{0: 0, 1 + learnAhead: 1, 2 + learnAhead: 0, math.MaxUint32: 0} {
		synctest.Test(t, func(t *testing.T) {
			store := new(countedKeys)
			k, err := OpenKeyring(t.Context(), []MasterKey{newMaster(t)}, store, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			before := store.reads.Load()
			if err := k.learn(version); !errors.Is(err, ErrOpen) {
				t.Errorf("%d: %v", version, err)
			}
			if got := store.reads.Load() - before; got != reads {
				t.Errorf("%d: %d reads, want %d", version, got, reads)
			}
		})
	}
}

// TestLearnClock checks that a clock that was set back makes no caller wait.
func TestLearnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Duration(0)
		k, err := OpenKeyring(t.Context(), []MasterKey{newMaster(t)}, new(countedKeys), func() time.Time { return time.Now().Add(-back) })
		if err != nil {
			t.Fatal(err)
		}
		back = time.Hour
		started := time.Now()
		if err := k.learn(2); !errors.Is(err, ErrOpen) {
			t.Error(err)
		}
		if took := time.Since(started); took > learnEvery {
			t.Errorf("it took %v", took)
		}
	})
}

// TestLearnToken checks that a token sealed with a key that was just added can be opened.
func TestLearnToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store := newMaster(t), new(countedKeys)
		open := func() *Keyring {
			k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		here := open().Sealer("session")
		if err := store.AddDataKey(t.Context(), NewDataKey(m, 2, time.Now().Add(-time.Hour))); err != nil {
			t.Fatal(err)
		}
		token := open().Sealer("session").Seal([]byte("s"), nil)
		if plain, err := here.Open(token, nil); err != nil || string(plain) != "s" {
			t.Errorf("%q, %v", plain, err)
		}
	})
}

// TestStoreLosesKeys checks that a store without any keys is not one that lacks only that key: the sealed value may
// be intact.
func TestStoreLosesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := new(countedKeys)
		k, err := OpenKeyring(t.Context(), []MasterKey{newMaster(t)}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		store.keys = nil
		if err := k.learn(2); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("another key: %v", err)
		}
		if sealed, err := k.Seal([]byte("x"), place); err != nil || sealed[4] != 1 {
			t.Errorf("the known key: %v", err)
		}
	})
}

// TestKeyVersions checks that versions are those that fit into sealed values.
func TestKeyVersions(t *testing.T) {
	for version, good := range map[int]bool{-1: false, 0: false, 1: true, math.MaxUint32: true, math.MaxUint32 + 1: false} {
		if got, err := keyVersion(version); (err == nil) != good || good && int(got) != version {
			t.Errorf("%d: %d, %v", version, got, err)
		}
	}
}

// TestWrappedLength checks that a data key of another length is refused, also when it would be a good key of a weaker
// cipher.
func TestWrappedLength(t *testing.T) {
	m := newMaster(t)
	for length, good := range map[int]bool{16: false, 24: false, keySize: true, keySize + 1: false} {
		wrapped := m.wrap(make([]byte, length), 1, time.Time{})
		if _, _, err := openDataKey(wrapped, map[string]MasterKey{m.id: m}); (err == nil) != good || err != nil && !errors.Is(err, errUnwrap) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

// TestRewrap checks that a data key moves to the first master key once, stays the same key, and is refused when it is
// invalid.
func TestRewrap(t *testing.T) {
	former, next := newMaster(t), newMaster(t)
	wrapped := NewDataKey(former, 1, time.Unix(5000, 0))
	moved, changed, err := Rewrap(wrapped, []MasterKey{next, former})
	if err != nil || !changed || moved.MasterKeyID != next.id || !moved.CreatedAt.Equal(wrapped.CreatedAt) {
		t.Fatalf("%+v, %v, %v", moved, changed, err)
	}
	before, _, err := openDataKey(wrapped, map[string]MasterKey{former.id: former})
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := openDataKey(moved, map[string]MasterKey{next.id: next})
	if err != nil || string(after.raw()) != string(before.raw()) {
		t.Errorf("it is another key: %v", err)
	}
	again, changed, err := Rewrap(moved, []MasterKey{next, former})
	if err != nil || changed || string(again.Wrapped) != string(moved.Wrapped) {
		t.Errorf("moved twice: %v, %v", changed, err)
	}
	moved.Wrapped[0] ^= 1
	if _, _, err := Rewrap(moved, []MasterKey{former, next}); !errors.Is(err, errUnwrap) {
		t.Errorf("a broken one: %v", err)
	}
}

// TestGuessable checks L10: the bounds of possible keys.
func TestGuessable(t *testing.T) {
	repeat := func(values ...byte) []byte {
		raw := make([]byte, keySize)
		for i := range raw {
			raw[i] = values[i%len(values)]
		}
		return raw
	}
	drawn := []byte{0x9f, 0x2c, 0x7b, 0xe1, 0x04, 0x4d, 0x8a, 0x63, 0xd5, 0xf0, 0xc8, 0x12, 0x7a, 0xb3, 0xe9, 0x65}
	counted := make([]byte, keySize) // seven steps, in turn
	for i := 1; i < keySize; i++ {
		counted[i] = counted[i-1] + []byte{1, 2, 3, 5, 7, 11, 13}[i%7]
	}
	eight := make([]byte, keySize)
	for i := 1; i < keySize; i++ {
		eight[i] = eight[i-1] + []byte{1, 2, 3, 5, 7, 11, 13, 17}[i%8]
	}
	text := []byte("correct horse battery staple 42!")
	with := func(b byte) []byte { return append(append([]byte(nil), text[:31]...), b) }
	for name, tc := range map[string]struct {
		raw       []byte
		guessable bool
	}{
		"fifteen values": {repeat(drawn[:15]...), true}, "sixteen values": {repeat(drawn...), false}, "seven steps": {counted, true}, "eight steps": {eight, false},
		"typed": {text, true}, "typed, a tilde": {with('~'), true}, "typed, a blank": {with(' '), true}, "not typed, DEL": {with(0x7f), false}, "not typed, control": {with(0x1f), false},
	} {
		if got := guessable(tc.raw); got != tc.guessable {
			t.Errorf("%s: %v", name, got)
		}
	}
}
