package streams

import (
	"context"
	"testing"
	"time"
)

// BenchmarkOpen registers and ends a stream, as every request to an upstream does.
func BenchmarkOpen(b *testing.B) {
	var r Registry
	owner := Owner{Organization: "018f3c2e-0000-7000-8000-000000000001", User: "018f3c2e-0000-7000-8000-000000000002", Server: "018f3c2e-0000-7000-8000-000000000003"}
	expires := time.Now().Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		request, end := context.WithCancel(b.Context()) // net/http's server has such a context for each request
		ctx, done := r.Open(request, owner, Call, expires, Limits{PerUser: 100, Total: 10_000}, nil)
		stop := watch(ctx, func() {})
		stop()
		done()
		end()
	}
}

// watch does the work of the connection to the upstream.
func watch(ctx context.Context, f func()) func() bool {
	if tells, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return tells.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}
