package sqlite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// BenchmarkObserveTools pins the tools of the longest list, 10,000, as many at once as the gateway does.
func BenchmarkObserveTools(b *testing.B) {
	s, c := benchStore(b)
	definition := json.RawMessage(`{"description":"` + strings.Repeat("x", 200) + `"}`)
	tools := make([]storage.ObservedTool, 10_000)
	for i := range tools {
		tools[i] = storage.ObservedTool{Name: fmt.Sprint("tool", i), Hash: fmt.Sprintf("%064d", i), Definition: definition}
	}
	var longest time.Duration
	for n := 0; b.Loop(); n++ {
		server := fmt.Sprint("flooded", n)
		if err := s.CreateServer(b.Context(), storage.Server{ID: server, OrganizationID: c.OrganizationID, Name: server, Slug: server,
			DirectoryID: "entry", Status: storage.ServerActive}); err != nil {
			b.Fatal(err)
		}
		for some := range slices.Chunk(tools, 500) {
			began := time.Now()
			if _, err := s.ObserveTools(b.Context(), c.OrganizationID, server, some, time.UnixMicro(0)); err != nil {
				b.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		}
	}
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest")
}
