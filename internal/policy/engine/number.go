package engine

import (
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// number returns the value that conditions see for a JSON number. An integer in the range of int64 becomes an int,
// every other number a double. It returns false for a number that no double holds as it was written, such as
// 9007199254740993.0 or 1e400. Conditions would otherwise judge a number that differs from the one that the server
// gets.
func number(lexeme string) (ref.Val, bool) {
	if i, err := strconv.ParseInt(lexeme, 10, 64); err == nil {
		return types.Int(i), true
	}
	f, err := strconv.ParseFloat(lexeme, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil, false
	}
	digits, exponent := decimal(lexeme)
	shortest, itsExponent := decimal(strconv.FormatFloat(f, 'e', -1, 64))
	return types.Double(f), digits == shortest && (digits == "" || exponent == itsExponent)
}

// decimal splits a number into its significant digits, without zeros at either end, and the power of ten of the last
// digit. Zero has no digits. The sign is left out, because reading never changes it.
func decimal(lexeme string) (digits string, exponent int) {
	mantissa := strings.TrimPrefix(lexeme, "-")
	if at := strings.IndexAny(mantissa, "eE"); at >= 0 {
		// An exponent outside the range of int belongs to zero, or the number was refused earlier.
		exponent, _ = strconv.Atoi(mantissa[at+1:])
		mantissa = mantissa[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	return trimmed, exponent + len(digits) - len(trimmed)
}
