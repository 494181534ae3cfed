package token

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
)

func TestParseKeysUsable(t *testing.T) {
	rsaPublic := &rsaTestKey().PublicKey
	for name, key := range map[string]map[string]any{
		"RS256":                  with(rsaJWK(rsaPublic), "kid", "k", "alg", "RS256"),
		"RS256 without alg":      with(rsaJWK(rsaPublic), "kid", "k", "use", "sig", "x5c", []string{"ignored"}),
		"RS256 for verification": with(rsaJWK(rsaPublic), "kid", "k", "key_ops", []string{"sign", "verify"}),
		"ES256":                  with(ecJWK(&ecTestKey().PublicKey), "kid", "k"),
		"RS256 of 8192 bits":     with(rsaJWK(&rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), maxRSABits-1, 1), E: 3}), "kid", "k"),
		"RS256 with e = 2^31-1":  with(rsaJWK(&rsa.PublicKey{N: rsaPublic.N, E: 1<<31 - 1}), "kid", "k"),
		"ES512":                  with(ecJWK(&must(ecdsa.GenerateKey(elliptic.P521(), nil)).PublicKey), "kid", "k"),
		"ES384":                  with(ecJWK(&ec384TestKey().PublicKey), "kid", "k", "alg", "ES384"),
		"EdDSA":                  with(edJWK(edTestKey().Public()), "kid", "k", "alg", "EdDSA"),
	} {
		t.Run(name, func(t *testing.T) {
			keys, skipped, err := parseKeys(jwks(key))
			if err != nil || len(keys) != 1 || len(skipped) != 0 {
				t.Fatalf("keys %v, skipped %v, error %v", keys, skipped, err)
			}
			alg, _, _ := strings.Cut(name, " ")
			for _, kid := range []string{"k", ""} {
				if found, err := keys.find(kid, alg); found == nil || err != nil {
					t.Errorf("kid %q: found %v, %v", kid, found, err)
				}
			}
			if found, _ := keys.find("K", alg); found != nil {
				t.Error("kid is not compared exactly")
			}
		})
	}
}

func TestParseKeysLeftOut(t *testing.T) {
	good := func() map[string]any { return rsaJWK(&rsaTestKey().PublicKey) }
	n := rsaTestKey().N
	weak := func(bits uint) map[string]any {
		odd := new(big.Int).SetBit(new(big.Int).Lsh(big.NewInt(1), bits-1), 0, 1)
		return with(good(), "n", b64(odd.Bytes()))
	}
	small := func(text string) map[string]any {
		return with(edJWK(edTestKey().Public()), "x", b64(must(hex.DecodeString(text))))
	}
	ec := func() map[string]any { return ecJWK(&ecTestKey().PublicKey) }
	for name, key := range map[string]any{
		"J07 RSA 512":                  weak(512),
		"J07 RSA 1024":                 weak(1024),
		"J07 RSA 2047":                 weak(2047),
		"J07 RSA 8193":                 weak(8193),
		"J07 RSA e=1":                  with(good(), "e", "AQ"),
		"J07 RSA e=2":                  with(good(), "e", "Ag"),
		"J07 RSA e=0":                  with(good(), "e", "AA"),
		"J07 RSA e even":               with(good(), "e", b64([]byte{1, 0, 0})),
		"J07 RSA e of 33 bits":         with(good(), "e", b64([]byte{1, 0, 0, 0, 1})),
		"J07 RSA e of 32 bits":         with(good(), "e", b64([]byte{0xff, 0xff, 0xff, 0xff})),
		"J07 RSA modulus even":         with(good(), "n", b64(new(big.Int).Sub(n, big.NewInt(1)).Bytes())),
		"RSA without n":                map[string]any{"kty": "RSA", "e": "AQAB"},
		"RSA n with padding":           with(good(), "n", b64(n.Bytes())+"=="),
		"RSA n a number":               with(good(), "n", 17),
		"J07 EC point off the curve":   with(ec(), "y", b64(bytes.Repeat([]byte{1}, 32))),
		"J07 EC point at infinity":     with(ec(), "x", b64(make([]byte, 32)), "y", b64(make([]byte, 32))),
		"J07 EC coordinate beyond p":   with(ec(), "x", b64(bytes.Repeat([]byte{0xff}, 32))),
		"J07 EC coordinate too long":   with(ec(), "x", b64(make([]byte, 33))),
		"J07 EC on another curve":      with(ec(), "crv", "P-384"),
		"J07 EC coordinate of no byte": with(ec(), "x", "", "y", b64(rootOfB().Bytes())),
		"EC on secp256k1":              with(ec(), "crv", "secp256k1"),
		"EC without a curve":           with(ec(), "crv", nil),
		"J07 Ed25519 all zero":         small(strings.Repeat("00", 32)),
		"J07 Ed25519 identity":         small("01" + strings.Repeat("00", 31)),
		"J07 Ed25519 identity, sign":   small("01" + strings.Repeat("00", 30) + "80"),
		"J07 Ed25519 p-1":              small("ec" + strings.Repeat("ff", 30) + "7f"),
		"J07 Ed25519 p, not canonical": small("ed" + strings.Repeat("ff", 30) + "7f"),
		"J07 Ed25519 order 8":          small("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"),
		"J07 Ed25519 order 8, other":   small("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
		"Ed25519 too short":            small("0102"),
		"kty that is not OKP":          with(edJWK(edTestKey().Public()), "kty", "okp"),
		"X25519":                       with(edJWK(edTestKey().Public()), "crv", "X25519"),
		"J29 oct":                      map[string]any{"kty": "oct", "kid": "rsa", "k": "c2VjcmV0", "alg": "HS256"},
		"J29 oct in RSA's clothes":     map[string]any{"kty": "oct", "alg": "RS256", "k": "c2VjcmV0", "n": b64(n.Bytes()), "e": "AQAB"},
		"J05 RSA for HS256":            with(good(), "alg", "HS256"),
		"J06 RSA for ES256":            with(good(), "alg", "ES256"),
		"alg null":                     with(good(), "alg", nil),
		"use enc":                      with(good(), "use", "enc"),
		"use in another case":          with(good(), "use", "SIG"),
		"use null":                     with(good(), "use", nil),
		"key_ops without verify":       with(good(), "key_ops", []string{"encrypt"}),
		"key_ops empty":                with(good(), "key_ops", []string{}),
		"key_ops not an array":         with(good(), "key_ops", "verify"),
		"a private key":                with(good(), "d", "AQ"),
		"kid a number":                 with(good(), "kid", 1),
		"kid too long":                 with(good(), "kid", strings.Repeat("k", 257)),
		"kid empty":                    with(good(), "kid", ""),
		"kty in another case":          with(good(), "kty", "rsa"),
		"no kty":                       map[string]any{},
		"a string":                     "key",
		"null":                         nil,
	} {
		t.Run(name, func(t *testing.T) {
			keys, skipped, err := parseKeys(jwks(key, with(rsaJWK(&otherRSAKey().PublicKey), "kid", "good")))
			if err != nil || len(keys) != 1 || len(skipped) != 1 {
				t.Fatalf("keys %v, skipped %v, error %v", keys, skipped, err)
			}
			if found, _ := keys.find("good", "RS256"); found == nil {
				t.Error("the good key beside it is gone")
			}
		})
	}
}

// rootOfB is y of the point on P-256 whose x is 0.
func rootOfB() *big.Int {
	curve := elliptic.P256().Params()
	return new(big.Int).ModSqrt(curve.B, curve.P)
}

func TestParseKeysRefusesDocuments(t *testing.T) {
	many := slices.Repeat([]any{rsaJWK(&rsaTestKey().PublicKey)}, maxKeys+1)
	for name, document := range map[string]string{
		"J27 empty":             "",
		"J27 HTML":              "<html><body>maintenance</body></html>",
		"J27 keys null":         `{"keys":null}`,
		"J27 no keys":           `{}`,
		"J27 array":             `[]`,
		"J27 keys object":       `{"keys":{}}`,
		"J27 keys twice":        `{"keys":[],"keys":[]}`,
		"J27 trailing data":     `{"keys":[]}{}`,
		"J27 too many keys":     string(jwks(many...)),
		"J23 depth":             `{"keys":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`,
		"J12 KEYS":              `{"KEYS":[]}`,
		"a member twice in key": `{"keys":[{"kty":"oct","kty":"RSA"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if keys, _, err := parseKeys([]byte(document)); err == nil {
				t.Errorf("accepted: %v", keys)
			}
		})
	}
	if keys, _, err := parseKeys(jwks(many[1:]...)); err != nil || len(keys) != maxKeys {
		t.Errorf("as many keys as allowed: %d, %v", len(keys), err)
	}
	if keys, _, err := parseKeys(jwks()); err != nil || len(keys) != 0 {
		t.Errorf("J26 an empty set is a set: %v, %v", keys, err)
	}
}

func TestFindAmongDuplicates(t *testing.T) {
	a, b := rsaJWK(&rsaTestKey().PublicKey), rsaJWK(&otherRSAKey().PublicKey)
	ec := ecJWK(&ecTestKey().PublicKey)
	for name, c := range map[string]struct {
		keys     []any
		kid, alg string
		found    bool
	}{
		"J27 one kid, two keys":                {[]any{with(a, "kid", "k"), with(b, "kid", "k")}, "k", "RS256", false},
		"J27 one kid, the same key twice":      {[]any{with(a, "kid", "k"), with(a, "kid", "k")}, "k", "RS256", true},
		"J27 one kid, told apart by type":      {[]any{with(a, "kid", "k"), with(ec, "kid", "k")}, "k", "ES256", true},
		"no kid, one of the type":              {[]any{with(a, "kid", "k"), with(ec, "kid", "l")}, "", "RS256", true},
		"no kid, two of the type":              {[]any{with(a, "kid", "k"), with(b, "kid", "l")}, "", "RS256", false},
		"kid, keys without":                    {[]any{rsaJWK(&rsaTestKey().PublicKey)}, "k", "RS256", false},
		"J05 an algorithm nobody knows":        {[]any{with(a, "kid", "k")}, "k", "HS256", false},
		"J06 the key is for another algorithm": {[]any{with(a, "kid", "k", "alg", "RS256")}, "k", "PS256", false},
		"J06 the kid is another algorithm's":   {[]any{with(ec, "kid", "k")}, "k", "RS256", false},
	} {
		t.Run(name, func(t *testing.T) {
			keys, skipped, err := parseKeys(jwks(c.keys...))
			if err != nil || len(skipped) != 0 {
				t.Fatal(skipped, err)
			}
			found, _ := keys.find(c.kid, c.alg)
			if (found != nil) != c.found {
				t.Errorf("found %v, want %v", found, c.found)
			}
		})
	}
}

func TestECCoordinateWithoutLeadingZero(t *testing.T) {
	for { // until a coordinate starts with a zero byte: one key in 128
		k := must(ecdsa.GenerateKey(elliptic.P256(), nil))
		j := ecJWK(&k.PublicKey)
		point := must(k.PublicKey.Bytes())
		if point[1] != 0 && point[33] != 0 {
			continue
		}
		j["x"] = b64(bytes.TrimLeft(point[1:33], "\x00"))
		j["y"] = b64(bytes.TrimLeft(point[33:], "\x00"))
		keys, skipped, err := parseKeys(jwks(j))
		if err != nil || len(keys) != 1 {
			t.Fatal(skipped, err)
		}
		if !k.PublicKey.Equal(keys[0].public) {
			t.Error("another key came out")
		}
		return
	}
}

func TestNewStaticKeysRefuses(t *testing.T) {
	for name, k := range map[string]StaticKey{
		"no id":             {Public: &rsaTestKey().PublicKey},
		"no key":            {ID: "k"},
		"a private key":     {ID: "k", Public: rsaTestKey()},
		"a secret":          {ID: "k", Public: []byte("secret")},
		"empty RSA":         {ID: "k", Public: &rsa.PublicKey{}},
		"empty EC":          {ID: "k", Public: &ecdsa.PublicKey{}},
		"nil RSA":           {ID: "k", Public: (*rsa.PublicKey)(nil)},
		"nil EC":            {ID: "k", Public: (*ecdsa.PublicKey)(nil)},
		"nil Ed25519":       {ID: "k", Public: ed25519.PublicKey(nil)},
		"negative RSA":      {ID: "k", Public: &rsa.PublicKey{N: new(big.Int).Neg(rsaTestKey().N), E: 3}},
		"RSA e of 32 bits":  {ID: "k", Public: &rsa.PublicKey{N: rsaTestKey().N, E: 1<<31 + 1}},
		"another algorithm": {ID: "k", Algorithm: "ES256", Public: &rsaTestKey().PublicKey},
		"HS256":             {ID: "k", Algorithm: "HS256", Public: &rsaTestKey().PublicKey},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewStaticKeys(k); err == nil {
				t.Error("accepted")
			}
		})
	}
}

// TestFits checks that an algorithm takes keys of its own type and curve and no others.
func TestFits(t *testing.T) {
	keys := map[string]crypto.PublicKey{
		"RSA": &rsaTestKey().PublicKey, "Ed25519": edTestKey().Public(), "P-256": &ecTestKey().PublicKey, "P-384": &ec384TestKey().PublicKey,
		"P-521": &must(ecdsa.GenerateKey(elliptic.P521(), nil)).PublicKey, "no curve": &ecdsa.PublicKey{}, "a secret": []byte("secret"), "nothing": nil,
	}
	for name, fitting := range map[string]string{
		"RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
		"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519", "HS256": "", "none": "",
	} {
		a, ok := algorithmNamed(name)
		if ok != (fitting != "") {
			t.Errorf("%s: known is %v", name, ok)
		}
		for kind, key := range keys {
			if a.fits(key) != (kind == fitting) {
				t.Errorf("J06 %s with a key of %s: %v", name, kind, kind != fitting)
			}
		}
	}
}

// TestSameKey checks that keys are compared by value, not by identity.
func TestSameKey(t *testing.T) {
	rsaKey, ecKey, edKey := &rsaTestKey().PublicKey, &ecTestKey().PublicKey, edTestKey().Public()
	rsaCopy, ecCopy := *rsaKey, *ecKey
	for _, tc := range []struct {
		name string
		a, b crypto.PublicKey
		want bool
	}{
		{"RSA", rsaKey, rsaKey, true}, {"RSA, copied", rsaKey, &rsaCopy, true}, {"two RSA", rsaKey, &otherRSAKey().PublicKey, false},
		{"EC", ecKey, ecKey, true}, {"EC, copied", ecKey, &ecCopy, true}, {"two EC", ecKey, &must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).PublicKey, false},
		{"Ed25519", edKey, edKey, true}, {"RSA and EC", rsaKey, ecKey, false}, {"EC and RSA", ecKey, rsaKey, false}, {"Ed25519 and RSA", edKey, rsaKey, false},
		{"no RSA and EC", (*rsa.PublicKey)(nil), ecKey, false}, {"no EC and RSA", (*ecdsa.PublicKey)(nil), rsaKey, false},
		{"nothing", nil, nil, false}, {"a secret", []byte("s"), []byte("s"), false},
	} {
		if sameKey(tc.a, tc.b) != tc.want {
			t.Errorf("%s: %v", tc.name, !tc.want)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "k", "alg", "RS256"), ecJWK(&ecTestKey().PublicKey), edJWK(edTestKey().Public())))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AA"}]}`))
	f.Add([]byte(`{"keys":null}`))
	f.Add(must(json.Marshal(map[string]any{"keys": []any{map[string]any{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}}})))
	f.Fuzz(func(t *testing.T, document []byte) {
		keys, _, err := parseKeys(document)
		if err != nil && keys != nil {
			t.Fatal("keys came with an error")
		}
		for _, k := range keys {
			if err := checkKey(k.public); err != nil {
				t.Fatalf("an unusable key was kept: %v", err)
			}
			for _, alg := range DefaultAlgorithms() {
				keys.find(k.id, alg)
			}
		}
	})
}
