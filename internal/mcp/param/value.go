package param

import (
	"math"
	"strconv"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// maxSafe is the largest integer that every reader of JSON reads exactly.
const maxSafe = 1<<53 - 1

// text writes a value in the form of a header. ok is false for values that have no such form: objects, arrays, null,
// fractions and integers above maxSafe.
func text(v strictjson.Value) (s string, ok bool) {
	switch v.Kind() {
	case strictjson.String:
		return v.Str(), true
	case strictjson.Bool:
		return strconv.FormatBool(v.Bool()), true
	case strictjson.Number:
		n, ok := integer(v.Num())
		return strconv.FormatInt(n, 10), ok
	}
	return "", false
}

// integer reads a number as servers compare it: 42.0 is 42.
func integer(s string) (int64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		return 0, false
	}
	return int64(f), true
}

// says reports whether a header's decoded text equals the value.
func says(header string, v strictjson.Value) bool {
	own, ok := text(v)
	if !ok {
		return false
	}
	if v.Kind() == strictjson.Number {
		said, ok := integer(header)
		return ok && strconv.FormatInt(said, 10) == own
	}
	return header == own
}

// at returns the value at a path; the zero Value where there is none.
func at(v strictjson.Value, path []string) strictjson.Value {
	for _, name := range path {
		v, _ = v.Get(name) // of no object: the zero Value
	}
	return v
}
