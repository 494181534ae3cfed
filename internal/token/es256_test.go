package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/fips140"
	"crypto/rand"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	jwt "github.com/golang-jwt/jwt/v5"
)

// signer is a key with a good signature over "header.payload".
type signer struct {
	key       *ecdsa.PrivateKey
	signature []byte
}

func newSigner() signer {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return signer{key, must(jwt.SigningMethodES256.Sign("header.payload", key))}
}

// verify checks times signatures, and that all are good.
func (s signer) verify(t *testing.T, e *es256, times int) {
	t.Helper()
	for range times {
		if err := e.Verify("header.payload", s.signature, &s.key.PublicKey); err != nil {
			t.Fatal(err)
		}
	}
}

// usual reports whether s's key is the one whose multiples are kept.
func (s signer) usual(e *es256) bool {
	m := e.usual.Load()
	return m != nil && m.key.Equal(&s.key.PublicKey)
}

// skipInFIPSMode skips tests of code that exists only without that mode; TestUsualKeyFIPS tests the mode.
func skipInFIPSMode(t *testing.T) {
	t.Helper()
	if fips140.Enabled() {
		t.Skip("no multiples are kept in FIPS mode")
	}
}

// TestUsualKey checks that the key that signs most gets its multiples, once that pays; all others are verified
// without.
func TestUsualKey(t *testing.T) {
	skipInFIPSMode(t)
	e, one, other := new(es256), newSigner(), newSigner()
	one.verify(t, e, usualLead-1)
	other.verify(t, e, 1)
	one.verify(t, e, 1)
	if one.usual(e) {
		t.Fatal("multiples are made before the key has its lead")
	}
	one.verify(t, e, 1)
	if !one.usual(e) {
		t.Fatal("no multiples are made of the key that has the lead")
	}
	first := e.usual.Load()
	one.verify(t, e, usualLead)
	other.verify(t, e, 1)
	one.verify(t, e, 1) // has the lead anew
	if e.usual.Load() != first {
		t.Error("multiples are made again")
	}
	copied := one.key.PublicKey // the key as a newly fetched set has it
	if err := e.Verify("header.payload", one.signature, &copied); err != nil || e.usual.Load() != first {
		t.Errorf("the same key, fetched again: %v", err)
	}
	if e.candidate != &one.key.PublicKey || e.lead != usualLead {
		t.Error("the same key, fetched again, counts as another")
	}

	// The issuer changes its key.
	other.verify(t, e, 2*usualLead)
	if !other.usual(e) {
		t.Error("the new key does not take the place of the old one")
	}
	one.verify(t, e, 1)
}

// TestUsualKeyIsUsed checks that a verifier has one for its issuer, and that signatures are checked with the
// multiples. To see that, the test exchanges them for another key's.
func TestUsualKeyIsUsed(t *testing.T) {
	skipInFIPSMode(t)
	v := testVerifier(t, nil)
	raw := sign(t, jwt.SigningMethodES256, ecTestKey(), esHeader, claims())
	for range usualLead {
		if _, err := v.Verify(t.Context(), raw, ""); err != nil {
			t.Fatal(Reason(err))
		}
	}
	e := v.algorithms["ES256"].method.(*es256)
	s := signer{ecTestKey(), must(jwt.SigningMethodES256.Sign("header.payload", ecTestKey()))}
	if !s.usual(e) {
		t.Fatal("the verifier keeps no multiples of its issuer's key")
	}
	e.usual.Store(&p256Multiples{key: &ecTestKey().PublicKey, rows: must(newP256Multiples(&newSigner().key.PublicKey)).rows})
	fetched := ecTestKey().PublicKey
	for name, key := range map[string]*ecdsa.PublicKey{"the same": &ecTestKey().PublicKey, "fetched again": &fetched} {
		if err := e.Verify("header.payload", s.signature, key); err == nil {
			t.Errorf("%s: not checked with the multiples", name)
		}
	}
	newSigner().verify(t, e, 1)
}

// TestUsualKeyMadeOnce checks that all other goroutines continue without multiples while they are made, and that a
// key that came too late gets its own later.
func TestUsualKeyMadeOnce(t *testing.T) {
	skipInFIPSMode(t)
	e, s := new(es256), newSigner()
	e.making.Lock()
	s.verify(t, e, 2*usualLead)
	if e.usual.Load() != nil {
		t.Fatal("multiples are made twice at once")
	}
	e.making.Unlock()
	s.verify(t, e, 1)
	if !s.usual(e) {
		t.Error("no multiples, since somebody else was making some")
	}
	late := newSigner() // its multiples come last, when it has no lead any more
	e.usual.Store(must(newP256Multiples(&late.key.PublicKey)))
	s.verify(t, e, 1)
	if !s.usual(e) {
		t.Error("the key that leads has to do without multiples")
	}
}

// TestUsualKeyRefuses checks that with and without multiples the same signatures are good, and that bad ones do not
// count.
func TestUsualKeyRefuses(t *testing.T) {
	skipInFIPSMode(t)
	e, s, other := new(es256), newSigner(), newSigner()
	changed := bytes.Clone(s.signature)
	changed[40]++
	refuse := func() {
		t.Helper()
		for name, c := range map[string]struct {
			signed    string
			signature []byte
			key       *ecdsa.PrivateKey
		}{
			"another text": {"header.payloae", s.signature, s.key}, "changed": {"header.payload", changed, s.key},
			"another key's": {"header.payload", other.signature, s.key}, "for another key": {"header.payload", s.signature, other.key},
			"J07 zeros": {"header.payload", make([]byte, 64), s.key}, "none": {"header.payload", nil, s.key},
			"short": {"header.payload", s.signature[1:], s.key}, "long": {"header.payload", append(bytes.Clone(s.signature), 0), s.key},
			"with a zero between": {"header.payload", slices.Concat(s.signature[:32], []byte{0}, s.signature[32:]), s.key},
			"in DER":              {"header.payload", appendECDSA(nil, s.signature[:32], s.signature[32:]), s.key},
		} {
			if err := e.Verify(c.signed, c.signature, &c.key.PublicKey); err == nil {
				t.Errorf("%s: taken", name)
			}
		}
	}
	for range usualLead {
		refuse()
	}
	if e.lead != 0 || e.candidate != nil || e.usual.Load() != nil {
		t.Error("bad signatures are counted")
	}
	s.verify(t, e, usualLead)
	if !s.usual(e) {
		t.Fatal("no multiples")
	}
	refuse()
	s.verify(t, e, 1)
}

// TestUsualKeyTogether uses two keys in turn from many goroutines. It is for the race detector, and good signatures
// stay good.
func TestUsualKeyTogether(t *testing.T) {
	e, signers := new(es256), []signer{newSigner(), newSigner()}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 2 * usualLead {
				s := signers[(n*i/50)%2]
				if err := e.Verify("header.payload", s.signature, &s.key.PublicKey); err != nil {
					t.Error(err)
				}
				if err := e.Verify("header.payload", s.signature, &signers[(n*i/50+1)%2].key.PublicKey); err == nil {
					t.Error("taken for the other key's")
				}
			}
		})
	}
	all.Wait()
}

// TestUsualKeyFIPS checks that where FIPS 140-3 mode is asked for, signatures are checked by the validated module
// alone.
func TestUsualKeyFIPS(t *testing.T) {
	const asked = "DURWARD_TEST_FIPS"
	if os.Getenv(asked) != "" {
		e, s := new(es256), newSigner()
		s.verify(t, e, usualLead+1)
		if e.usual.Load() != nil {
			t.Error("multiples are made")
		}
		return
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUsualKeyFIPS$", "-test.v")
	again.Env = append(os.Environ(), "GODEBUG=fips140=on", asked+"=1")
	if out, err := again.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS: TestUsualKeyFIPS")) {
		t.Errorf("%v\n%s", err, out)
	}
}
