//go:build !race

package nonblock

import (
	"io"
	"testing"
)

// TestLarge expects package net to read and write what the kernel copies for long.
func TestLarge(t *testing.T) {
	ours, theirs := pair(t, Wrap)
	c := ours.(*conn)
	go func() { _, _ = io.Copy(theirs, theirs) }()
	for size, byNet := range map[int]bool{1: false, mostBytes: false, mostBytes + 1: true, 16 << 20: true} {
		c.in.n, c.out.n = 0, 0
		written := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, size))
			written <- err
		}()
		p := make([]byte, size)
		n, err := c.Read(p)
		if err != nil || (c.in.n == 0) != byNet {
			t.Errorf("reading %d: %v, by package net: %v", size, err, c.in.n == 0)
		}
		if _, err := io.ReadFull(c.TCPConn, p[n:]); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil || (c.out.n == 0) != byNet {
			t.Errorf("writing %d: %v, by package net: %v", size, err, c.out.n == 0)
		}
	}
}
