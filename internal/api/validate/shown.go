package validate

import (
	"slices"
	"strconv"

	"github.com/durward-gateway/durward/internal/api/secretname"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// maxInput bounds the values in answers, in bytes.
const maxInput = 512

// shown returns a text as a problem's input; nil when it is too long for an answer, or mentions a secret.
func shown(s string) any {
	if len(s) > maxInput || secretname.Within(s) {
		return nil
	}
	return s
}

// showable reports whether an answer may contain a value. A value with a secret somewhere in it may not be shown,
// whatever type the field should have had: clients send a whole object where its member is expected.
func showable(v strictjson.Value) bool {
	return len(v.Raw()) <= maxInput && readable(v) && !hides(v)
}

// hides reports whether there may be a secret anywhere in a value.
func hides(v strictjson.Value) bool {
	return v.Kind() == strictjson.String && secretname.Within(v.Str()) || holdsSecret(v) ||
		slices.ContainsFunc(v.Elems(), hides) ||
		slices.ContainsFunc(v.Members(), func(m strictjson.Member) bool { return hides(m.Value) })
}

// holdsSecret reports whether a member of an object is a secret by its name, or names one, as a list of headers does.
// Clients that mix up its fields put the secret into another one.
func holdsSecret(object strictjson.Value) bool {
	return slices.ContainsFunc(object.Members(), func(m strictjson.Member) bool {
		return secretname.Like(m.Name) || secretname.Like(m.Value.Str())
	})
}

// holdsSecret reports whether a parameter of the query is a secret by its name.
func (q *Query) holdsSecret() bool {
	for name := range q.values {
		if secretname.Like(name) {
			return true
		}
	}
	return false
}

// readable reports whether every client can read v back: a number that no double holds stops many from reading the
// answer.
func readable(v strictjson.Value) bool {
	if v.Kind() != strictjson.Number {
		return true
	}
	_, err := strconv.ParseFloat(v.Num(), 64)
	return err == nil
}
