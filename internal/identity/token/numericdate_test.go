package token

import (
	"math/big"
	"strings"
	"testing"
)

func TestReadDecimal(t *testing.T) {
	for lexeme, want := range map[string][2]int64{
		"0": {0, 0}, "0.5": {0, 5e8}, "1764050000": {1764050000, 0}, "1764050000.5": {1764050000, 5e8},
		"1764050000.123456789987": {1764050000, 123456789}, "1.7640500005e9": {1764050000, 5e8}, "17640500005E-1": {1764050000, 5e8},
		"1e-9": {0, 1}, "1e-10": {0, 0}, "999999999999.999999999": {999999999999, 999999999}, "1e+11": {1e11, 0}, "0e32": {0, 0},
		"1764050000." + strings.Repeat("0", maxDateLexeme-11): {1764050000, 0},
	} {
		seconds, nanoseconds, ok := readDecimal(lexeme)
		if !ok || seconds != want[0] || nanoseconds != want[1] {
			t.Errorf("%s: %d, %d, %v", lexeme, seconds, nanoseconds, ok)
		}
	}
	for _, lexeme := range []string{"-1", "-0", "-0.5", "1e12", "1000000000000", "1e300", "1e-300", "1e33", "1e9999999999999999999999", "99999999999999999999",
		"1764050000." + strings.Repeat("0", maxDateLexeme-10)} {
		if seconds, nanoseconds, ok := readDecimal(lexeme); ok {
			t.Errorf("%s: %d, %d", lexeme, seconds, nanoseconds)
		}
	}
}

// FuzzReadDecimal compares with exact arithmetic.
func FuzzReadDecimal(f *testing.F) {
	for _, whole := range []uint64{0, 1, 1764050000, 1e12} {
		f.Add(whole, uint32(5), int8(-1))
		f.Add(whole, uint32(0), int8(9))
	}
	f.Fuzz(func(t *testing.T, whole uint64, fraction uint32, exponent int8) {
		lexeme := big.NewInt(0).SetUint64(whole).String() + "." + big.NewInt(int64(fraction)).String() + "e" + big.NewInt(int64(exponent)).String()
		exact, ok := new(big.Rat).SetString(lexeme)
		if !ok {
			t.Fatal(lexeme)
		}
		seconds, nanoseconds, ok := readDecimal(lexeme)
		if !ok {
			if exact.Cmp(big.NewRat(maxNumericDate, 1)) < 0 && exponent >= -maxDateExponent && exponent <= maxDateExponent {
				t.Fatalf("%s is refused", lexeme)
			}
			return
		}
		exact.Mul(exact, big.NewRat(1e9, 1))
		want := new(big.Int).Quo(exact.Num(), exact.Denom())
		if got := new(big.Int).Add(new(big.Int).Mul(big.NewInt(seconds), big.NewInt(1e9)), big.NewInt(nanoseconds)); got.Cmp(want) != 0 {
			t.Fatalf("%s: %s, not %s", lexeme, got, want)
		}
	})
}
