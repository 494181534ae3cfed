package app

import (
	"strconv"
	"testing"
)

// BenchmarkAuthenticateUnseen measures the cost of the first request of a token, of a user who is known.
func BenchmarkAuthenticateUnseen(b *testing.B) {
	core, i, _ := newAuthenticator(b)
	tokens := make([]string, 10_000)
	for n := range tokens {
		tokens[n] = i.sign(map[string]any{"jti": strconv.Itoa(n)})
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%len(tokens) == 0 {
			core.rulesID += "." // cached values are not found under these
		}
		if _, err := core.Authenticate(b.Context(), tokens[n%len(tokens)], ""); err != nil {
			b.Fatal(err)
		}
	}
}
