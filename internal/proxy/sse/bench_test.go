package sse

import (
	"io"
	"strings"
	"testing"
)

// BenchmarkNext reads one event of a stream that is already open.
func BenchmarkNext(b *testing.B) {
	event := "event: data_update\nid: 12\ndata: " + strings.Repeat("x", 200) + "\n\n"
	r := NewReader(endless(event), 0)
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	w := NewWriter(io.Discard, nil)
	data := []byte(`{"status":"ready","text":"` + strings.Repeat("x", 200) + `"}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Event("data_update", data); err != nil {
			b.Fatal(err)
		}
	}
}
