package token

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"errors"
)

// ecSignatures verifies signatures of RFC 7518 section 3.4: two numbers in a row, each as wide as the curve.
// golang-jwt goes through math/big, which costs a twelfth of the verification.
type ecSignatures struct {
	hash  crypto.Hash
	width int // of one number, in bytes
}

var errSignature = errors.New("the signature is not the key's")

// Verify verifies a signature. The key must fit the algorithm.
func (e ecSignatures) Verify(signed string, signature []byte, key any) error {
	if len(signature) != 2*e.width {
		return errSignature
	}
	der := appendECDSA(make([]byte, 0, 2*e.width+16), signature[:e.width], signature[e.width:])
	if !ecdsa.VerifyASN1(key.(*ecdsa.PublicKey), e.digest(signed), der) {
		return errSignature
	}
	return nil
}

func (e ecSignatures) digest(signed string) []byte {
	if e.hash == crypto.SHA256 { // the most frequent hash: usual tokens are copied to the stack, without an allocation
		sum := sha256.Sum256(append(make([]byte, 0, 2<<10), signed...))
		return sum[:]
	}
	digest := e.hash.New()
	digest.Write([]byte(signed))
	return digest.Sum(nil)
}

// appendECDSA writes a signature as ECDSA-Sig-Value in DER (RFC 3279 section 2.2.3). r and s have at most 66 bytes.
func appendECDSA(out, r, s []byte) []byte {
	const sequence, longForm = 0x30, 0x81
	r, s = bytes.TrimLeft(r, "\x00"), bytes.TrimLeft(s, "\x00")
	out = append(out, sequence)
	length := lenInteger(r) + lenInteger(s)
	if length > 127 {
		out = append(out, longForm)
	}
	out = append(out, byte(length))
	return appendInteger(appendInteger(out, r), s)
}

// lenInteger returns the number of bytes that appendInteger writes.
func lenInteger(n []byte) int {
	if len(n) == 0 || n[0] >= 0x80 {
		return 3 + len(n)
	}
	return 2 + len(n)
}

// appendInteger writes a number without leading zeros.
func appendInteger(out, n []byte) []byte {
	const integer = 0x02
	out = append(out, integer, byte(lenInteger(n)-2))
	if len(n) == 0 || n[0] >= 0x80 {
		out = append(out, 0) // zero needs a digit, and the first bit is a sign
	}
	return append(out, n...)
}
