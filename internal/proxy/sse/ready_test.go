package sse

import (
	"io"
	"strings"
	"testing"
)

// TestReady checks that an event reported as ready needs no further read.
func TestReady(t *testing.T) {
	const events = "data: a\n\n: c\n\n\ndata: b\r\n\r\ndata: c\n\n"
	r := NewReader(io.MultiReader(strings.NewReader(events), strings.NewReader("data: d\n\n")), 0)
	var got []bool
	for {
		ready, reads := r.Ready(), &counted{src: r.src}
		r.src = reads
		_, err := r.Next()
		if err == io.EOF {
			break
		}
		if got = append(got, ready); ready && reads.n > 0 {
			t.Errorf("block %d was ready, and took %d reads", len(got), reads.n)
		}
	}
	if len(got) != 7 || got[0] || !got[1] || !got[2] {
		t.Error(got)
	}
}

type counted struct {
	src io.Reader
	n   int
}

func (c *counted) Read(p []byte) (int, error) { c.n++; return c.src.Read(p) }
