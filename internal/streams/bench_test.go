package streams

import (
	"testing"
	"time"
)

// BenchmarkOpen registers and ends what every request to an upstream is.
func BenchmarkOpen(b *testing.B) {
	var r Registry
	owner := Owner{Organization: "018f3c2e-0000-7000-8000-000000000001", User: "018f3c2e-0000-7000-8000-000000000002", Server: "018f3c2e-0000-7000-8000-000000000003"}
	expires := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		_, done := r.Open(b.Context(), owner, Call, expires, Limits{PerUser: 100, Total: 10_000}, nil)
		done()
	}
}
