package app

import (
	"strconv"
	"testing"
)

// BenchmarkAuthenticateUnseen is what the first request of a token costs, of a user who is known.
func BenchmarkAuthenticateUnseen(b *testing.B) {
	core, i, _ := newAuthenticator(b)
	tokens := make([]string, 10_000)
	for n := range tokens {
		tokens[n] = i.sign(map[string]any{"jti": strconv.Itoa(n)})
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if n%len(tokens) == 0 {
			core.rulesID += "." // what was kept is not found under these
		}
		if _, err := core.Authenticate(b.Context(), tokens[n%len(tokens)], ""); err != nil {
			b.Fatal(err)
		}
	}
}
