package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"fmt"
	"math/big"

	"filippo.io/nistec"
)

// p256Width is the width of a number below the order of P-256, and of a digest of SHA-256, in bytes.
const p256Width = 32

// p256Multiples holds a public key Q on P-256 with precomputed multiples: u·Q is the sum of one point for each byte
// of u. These 32 additions take a quarter of the time of computing u·Q without them, which is two thirds of checking
// a signature. The size is 765 KiB.
//
// No value here is secret, so the time may depend on the values. The arithmetic of points is that of nistec, like in
// crypto/ecdsa.
type p256Multiples struct {
	key  *ecdsa.PublicKey                 // never changed
	rows [p256Width][255]nistec.P256Point // d·2⁸ⁱ·Q for d = 1 to 255 in row i
}

func newP256Multiples(key *ecdsa.PublicKey) (*p256Multiples, error) {
	encoded, err := key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("encoding the key: %w", err)
	}
	unit := nistec.NewP256Point() // 2⁸ⁱ·Q
	if _, err := unit.SetBytes(encoded); err != nil {
		return nil, fmt.Errorf("reading the key's point: %w", err)
	}
	m := &p256Multiples{key: key}
	for i := range m.rows {
		row := &m.rows[i]
		row[0].Set(unit)
		for d := 1; d < len(row); d++ {
			row[d].Add(&row[d-1], unit)
		}
		unit.Add(&row[len(row)-1], unit)
	}
	return m, nil
}

// times returns u·Q, u in big-endian.
func (m *p256Multiples) times(u *[p256Width]byte) *nistec.P256Point {
	sum := nistec.NewP256Point() // the point at infinity
	for i := range m.rows {
		if d := u[p256Width-1-i]; d != 0 {
			sum.Add(sum, &m.rows[i][d-1])
		}
	}
	return sum
}

// verify reports whether signature, r followed by s, is the key's signature over the digest (FIPS 186-5 section
// 6.4.2).
func (m *p256Multiples) verify(digest [p256Width]byte, signature []byte) bool {
	if len(signature) != 2*p256Width {
		return false
	}
	n := elliptic.P256().Params().N
	r, s := new(big.Int).SetBytes(signature[:p256Width]), new(big.Int).SetBytes(signature[p256Width:])
	if r.Sign() == 0 || r.Cmp(n) >= 0 || s.Sign() == 0 || s.Cmp(n) >= 0 { // J07: zeros would be good for every text
		return false
	}
	inverse := new(big.Int).ModInverse(s, n)
	e := new(big.Int).SetBytes(digest[:])
	var u, v [p256Width]byte
	e.Mul(e, inverse).Mod(e, n).FillBytes(u[:])
	inverse.Mul(inverse, r).Mod(inverse, n).FillBytes(v[:])
	sum, err := nistec.NewP256Point().ScalarBaseMult(u[:])
	if err != nil {
		return false
	}
	x, err := sum.Add(sum, m.times(&v)).BytesX()
	if err != nil { // the point at infinity has no x
		return false
	}
	found := new(big.Int).SetBytes(x)
	return found.Mod(found, n).Cmp(r) == 0
}
