package jsonrpc

import (
	"math"
	"strconv"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// IDValue returns a key for the id of a message: ids that are one JSON value have the same key, however they are
// spelled, and no string has the key of a number. id is the id as it was written; it was checked as part of its
// message.
func IDValue(id []byte) string {
	if len(id) == 0 {
		return ""
	}
	if id[0] == '"' {
		return string(strictjson.AppendUnescaped(make([]byte, 0, len(id)), id[:len(id)-1]))
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err == nil {
		return strconv.FormatInt(n, 10)
	}
	if f, err := strconv.ParseFloat(string(id), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return string(id)
}

// SameID reports whether two ids, as they were written, are one JSON value.
func SameID(a, b []byte) bool { return string(a) == string(b) || IDValue(a) == IDValue(b) }
