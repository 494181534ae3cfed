package seal

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// countedKeys counts reads, and refuses them when it is told to.
type countedKeys struct {
	memoryKeys
	reads   atomic.Int64
	refuses atomic.Bool
}

func (c *countedKeys) DataKeys(ctx context.Context) ([]storage.DataKey, error) {
	c.reads.Add(1)
	if c.refuses.Load() {
		return nil, storage.ErrUnavailable
	}
	return c.memoryKeys.DataKeys(ctx)
}

// A new data key is not used for sealing until every node has had the time to hear of it, and values that it sealed
// open at once everywhere.
func TestSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store := newMaster(t), &countedKeys{}
		open := func() *Keyring {
			k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			return k
		}
		one, other := open(), open()
		tokens, otherTokens, digests := one.Sealer("session"), other.Sealer("session"), other.Digester("api key")
		if err := store.AddDataKey(t.Context(), NewDataKey(m, 2, time.Now())); err != nil {
			t.Fatal(err)
		}
		sealed, err := one.Seal([]byte("x"), place)
		if err != nil || sealed[4] != 1 {
			t.Fatalf("sealed with %d, %v", sealed[4], err)
		}
		rotating := open()
		resealed, changed, err := rotating.Reseal(sealed, place)
		if err != nil || !changed || resealed[4] != 2 {
			t.Fatalf("sealed anew: %v, %v", changed, err)
		}
		if again, changed, err := rotating.Reseal(resealed, place); err != nil || changed || !bytes.Equal(again, resealed) {
			t.Errorf("sealed anew twice: %v, %v", changed, err)
		}
		if plain, err := one.Open(resealed, place); err != nil || string(plain) != "x" {
			t.Errorf("%q, %v", plain, err)
		}
		if sealed, _ := one.Seal([]byte("x"), place); sealed[4] != 1 {
			t.Error("a key is used before others have heard of it")
		}

		// one hears of it, other does nothing for a while: then its first use waits.
		time.Sleep(settleTime + time.Second)
		token := tokens.Seal([]byte("s"), nil)
		digest := one.Digester("api key").Sum([]byte("k"))
		if sealed, _ := one.Seal([]byte("x"), place); sealed[4] != 2 {
			t.Error("the new key is not used")
		}
		if plain, err := otherTokens.Open(token, nil); err != nil || string(plain) != "s" {
			t.Errorf("token: %q, %v", plain, err)
		}
		if sums := digests.Sums([]byte("k")); len(sums) != 2 || !bytes.Equal(sums[0], digest) {
			t.Error("a digest under the new key is not found")
		}
	})
}

// A node that only looks digests up hears of a key before any digest is made with it.
func TestLookupHearsOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store := newMaster(t), &countedKeys{}
		k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		digests := k.Digester("api key")
		time.Sleep(time.Hour)
		if err := store.AddDataKey(t.Context(), NewDataKey(m, 2, time.Now())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settleTime)
		if sums := digests.Sums(nil); len(sums) != 2 {
			t.Errorf("%d digests", len(sums))
		}
		// A store that does not answer is asked now and then, and the known keys are used meanwhile.
		store.refuses.Store(true)
		before := store.reads.Load()
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if len(digests.Sums(nil)) != 2 {
				t.Fatal("keys were forgotten")
			}
			synctest.Wait()
		}
		if reads := store.reads.Load() - before; reads < 5 || reads > 12 {
			t.Errorf("%d reads in a minute", reads)
		}
	})
}

// Values sealed by a former data key can always be opened; its tokens end a day after its successor took over.
func TestTokensRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store := newMaster(t), &countedKeys{}
		k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		tokens := k.Sealer("session")
		token := tokens.Seal([]byte("s"), nil)
		sealed, err := k.Seal([]byte("x"), place)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1000 * time.Hour)
		if err := store.AddDataKey(t.Context(), NewDataKey(m, 2, time.Now())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settleTime + tokenTime)
		if _, err := tokens.Open(token, nil); err != nil {
			t.Errorf("within a day: %v", err)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if _, err := tokens.Open(token, nil); !errors.Is(err, ErrOpen) {
			t.Errorf("after a day: %v", err)
		}
		if _, err := k.Open(sealed, place); err != nil {
			t.Errorf("a record: %v", err)
		}
		if got := tokens.Seal([]byte("s"), nil); got == "" {
			t.Error("nothing is sealed")
		} else if _, err := tokens.Open(got, nil); err != nil {
			t.Errorf("a new token: %v", err)
		}
	})
}

// Tokens come from clients: names of keys that are not there cost next to nothing.
func TestUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store := newMaster(t), &countedKeys{}
		k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		before := store.reads.Load()
		began := time.Now()
		var all sync.WaitGroup
		for version := range uint32(1000) {
			all.Go(func() {
				if err := k.learn(version + 2); !errors.Is(err, ErrOpen) {
					t.Errorf("a key that is not there: %v", err)
				}
			})
		}
		all.Wait()
		if reads := store.reads.Load() - before; reads > 3 || time.Since(began) > time.Second {
			t.Errorf("%d reads, %v", reads, time.Since(began))
		}
		if _, err := k.Open(append([]byte{format, 0, 0, 0, 9}, make([]byte, 40)...), place); !errors.Is(err, ErrOpen) {
			t.Error(err)
		}
	})
}

// A look that fails says nothing of the value: it is neither opened nor given up, and opens when the store answers again.
func TestLookupFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, store := newMaster(t), &countedKeys{}
		k, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		tokens := k.Sealer("session")
		if err := store.AddDataKey(t.Context(), NewDataKey(m, 2, time.Now())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(settleTime)
		other, err := OpenKeyring(t.Context(), []MasterKey{m}, store, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := other.Seal([]byte("x"), place)
		if err != nil || sealed[4] != 2 {
			t.Fatalf("sealed with %d, %v", sealed[4], err)
		}
		token := other.Sealer("session").Seal([]byte("s"), nil)

		store.refuses.Store(true)
		var all sync.WaitGroup
		for range 10 { // most of them get the result of another goroutine's search
			all.Go(func() {
				if got, err := k.Open(sealed, place); got != nil || !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrOpen) {
					t.Errorf("a record: %q, %v", got, err)
				}
				if got, err := tokens.Open(token, nil); got != nil || !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrOpen) {
					t.Errorf("a token: %q, %v", got, err)
				}
			})
		}
		all.Wait()

		store.refuses.Store(false)
		if got, err := k.Open(sealed, place); err != nil || string(got) != "x" {
			t.Errorf("a record: %q, %v", got, err)
		}
		if got, err := tokens.Open(token, nil); err != nil || string(got) != "s" {
			t.Errorf("a token: %q, %v", got, err)
		}
		// The store answers now: a key that is not in it is nowhere.
		sealed[4] = 3
		if _, err := k.Open(sealed, place); !errors.Is(err, ErrOpen) || errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("an unknown key: %v", err)
		}
	})
}
