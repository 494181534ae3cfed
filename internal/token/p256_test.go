package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"math/big"
	"slices"
	"testing"

	"filippo.io/nistec"
)

var p256Order = elliptic.P256().Params().N

// TestP256 makes good signatures without a private key, for two chosen scalars u and v of the check: with R = u·G +
// v·Q, r is its x, s = r/v and the digest u·s. The multiples must judge these, and changed ones, like crypto/ecdsa.
func TestP256(t *testing.T) {
	scalars := []*big.Int{big.NewInt(1), big.NewInt(2), big.NewInt(255), big.NewInt(256), new(big.Int).Lsh(big.NewInt(1), 248),
		new(big.Int).Sub(p256Order, big.NewInt(1)), new(big.Int).Sub(p256Order, big.NewInt(2)),
		new(big.Int).SetBytes(bytes.Repeat([]byte{0xff, 0}, 16)), new(big.Int).SetBytes(bytes.Repeat([]byte{0x7f}, 32))}
	for n := range 8 {
		random := sha256.Sum256([]byte{byte(n)})
		scalars = append(scalars, inOrder(random[:]))
	}
	// 1 and n-1 make Q the base point and its opposite: u·G and v·Q are then equal, or opposite, for some u and v.
	for _, d := range []*big.Int{big.NewInt(1), scalars[5], big.NewInt(2), scalars[9]} {
		q := base(d)
		m := multiplesOf(t, q)
		for _, u := range append(slices.Clone(scalars), new(big.Int)) {
			for _, v := range scalars {
				r, s, digest := signatureOf(q, u, v)
				if r.Sign() == 0 { // R is the point at infinity: r and s are those of 1·G, with which nothing can be wrong but the sum
					r = xOf(base(big.NewInt(1)))
					s, digest = solve(r, u, v)
					if agree(t, m, r, s, digest) {
						t.Errorf("d=%x u=%x v=%x: the sum is the point at infinity and was taken", d, u, v)
					}
					continue
				}
				if !agree(t, m, r, s, digest) {
					t.Errorf("d=%x u=%x v=%x: refused", d, u, v)
				}
				for _, change := range []struct{ r, s, digest *big.Int }{
					{plus(r, 1), s, digest}, {r, plus(s, 1), digest}, {r, s, plus(digest, 1)}, {s, r, digest},
					{r, new(big.Int).Sub(p256Order, s), digest}, // as good: the other of the two that every signature is
					{new(big.Int), s, digest}, {r, new(big.Int), digest}, {new(big.Int), new(big.Int), digest}, {new(big.Int), new(big.Int), new(big.Int)},
					{p256Order, s, digest}, {r, p256Order, digest}, {plus(p256Order, 1), s, digest},
					{new(big.Int).Add(r, p256Order), s, digest}, {r, new(big.Int).Add(s, p256Order), digest},
					{r, s, new(big.Int).Add(digest, p256Order)},
				} {
					agree(t, m, change.r, change.s, change.digest)
				}
			}
		}
	}
}

// TestP256LargeX checks the case that chance never shows: R's x is not below the order, and r is less than it.
func TestP256LargeX(t *testing.T) {
	found := 0
	for above := int64(0); found < 4; above++ {
		x := plus(p256Order, above)
		point, err := nistec.NewP256Point().SetBytes(append([]byte{2}, x.FillBytes(make([]byte, p256Width))...))
		if err != nil || above == 0 { // no point has that x; r = 0 is no signature
			continue
		}
		found++
		u, v := big.NewInt(3), big.NewInt(5)
		m := multiplesOf(t, keyFor(point, u, v))
		r := big.NewInt(above)
		s, digest := solve(r, u, v)
		if !agree(t, m, r, s, digest) {
			t.Errorf("r = n+%d modulo n: refused", above)
		}
		if agree(t, m, x, s, digest) {
			t.Errorf("r = n+%d itself: taken", above)
		}
	}
}

// TestP256LargeS checks that s + n is no other spelling of s, which fits only when s is small.
func TestP256LargeS(t *testing.T) {
	point, s, digest := base(big.NewInt(1000)), big.NewInt(5), big.NewInt(77)
	r := xOf(point)
	inverse := new(big.Int).ModInverse(s, p256Order)
	u, v := new(big.Int).Mul(digest, inverse), new(big.Int).Mul(r, inverse)
	m := multiplesOf(t, keyFor(point, u.Mod(u, p256Order), v.Mod(v, p256Order)))
	if !agree(t, m, r, s, digest) {
		t.Error("s = 5: refused")
	}
	if agree(t, m, r, new(big.Int).Add(s, p256Order), digest) {
		t.Error("s = n + 5: taken")
	}
}

// FuzzP256 compares the check with multiples with crypto/ecdsa's.
func FuzzP256(f *testing.F) {
	f.Add([]byte{1}, []byte{1}, []byte{1}, []byte{})
	f.Add([]byte{2}, []byte{0}, []byte{0xff, 0xff}, []byte{1})
	f.Add(plus(p256Order, -1).Bytes(), []byte{7}, []byte{7}, bytes.Repeat([]byte{0}, 96))
	f.Fuzz(func(t *testing.T, d, u, v, change []byte) {
		dn, un, vn := inOrder(d), inOrder(u), inOrder(v)
		if dn.Sign() == 0 || vn.Sign() == 0 {
			return
		}
		q := base(dn)
		m := multiplesOf(t, q)
		r, s, digest := signatureOf(q, un, vn)
		if r.Sign() == 0 {
			r = new(big.Int).Set(vn)
			s, digest = solve(r, un, vn)
		} else if !agree(t, m, r, s, digest) {
			t.Errorf("d=%x u=%x v=%x: refused", dn, un, vn)
		}
		var all [3 * p256Width]byte
		for i, n := range []*big.Int{r, s, digest} {
			n.FillBytes(all[i*p256Width : (i+1)*p256Width])
		}
		for i := range min(len(change), len(all)) {
			all[i] ^= change[i]
		}
		number := func(i int) *big.Int { return new(big.Int).SetBytes(all[i*p256Width : (i+1)*p256Width]) }
		agree(t, m, number(0), number(1), number(2))
	})
}

// agree fails when the two checks differ, and returns their result. Numbers of more than 32 bytes reach neither.
func agree(t *testing.T, m *p256Multiples, r, s, digest *big.Int) bool {
	t.Helper()
	if max(r.BitLen(), s.BitLen(), digest.BitLen()) > 8*p256Width {
		return false
	}
	var d [p256Width]byte
	digest.FillBytes(d[:])
	signature := append(r.FillBytes(make([]byte, p256Width)), s.FillBytes(make([]byte, p256Width))...)
	want := ecdsa.VerifyASN1(m.key, d[:], appendECDSA(nil, signature[:p256Width], signature[p256Width:]))
	if got := m.verify(d, signature); got != want {
		t.Errorf("r=%x s=%x digest=%x: %v, crypto/ecdsa says %v", r, s, digest, got, want)
	}
	return want
}

// signatureOf returns a signature that is good for the scalars u and v of the check. r is 0 when u·G + v·Q is the
// point at infinity.
func signatureOf(q *nistec.P256Point, u, v *big.Int) (r, s, digest *big.Int) {
	sum := times(q, v)
	if sum.Add(sum, base(u)).IsInfinity() == 1 {
		return new(big.Int), nil, nil
	}
	r = xOf(sum)
	r.Mod(r, p256Order)
	s, digest = solve(r, u, v)
	return r, s, digest
}

// solve returns the s and the digest with which the check of r comes by u and v.
func solve(r, u, v *big.Int) (s, digest *big.Int) {
	s = new(big.Int).ModInverse(v, p256Order)
	s.Mul(s, r).Mod(s, p256Order)
	digest = new(big.Int).Mul(u, s)
	return s, digest.Mod(digest, p256Order)
}

// keyFor returns the Q of which u·G + v·Q is this point.
func keyFor(point *nistec.P256Point, u, v *big.Int) *nistec.P256Point {
	q := nistec.NewP256Point().Negate(base(u))
	return times(q.Add(q, point), new(big.Int).ModInverse(v, p256Order))
}

func multiplesOf(t *testing.T, q *nistec.P256Point) *p256Multiples {
	t.Helper()
	return must(newP256Multiples(must(ecdsa.ParseUncompressedPublicKey(elliptic.P256(), q.Bytes()))))
}

func base(u *big.Int) *nistec.P256Point {
	return must(nistec.NewP256Point().ScalarBaseMult(u.FillBytes(make([]byte, p256Width))))
}

func times(q *nistec.P256Point, u *big.Int) *nistec.P256Point {
	return must(nistec.NewP256Point().ScalarMult(q, u.FillBytes(make([]byte, p256Width))))
}

func xOf(p *nistec.P256Point) *big.Int { return new(big.Int).SetBytes(must(p.BytesX())) }

func inOrder(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	return n.Mod(n, p256Order)
}

func plus(n *big.Int, d int64) *big.Int { return new(big.Int).Add(n, big.NewInt(d)) }
