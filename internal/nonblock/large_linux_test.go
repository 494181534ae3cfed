//go:build linux && !race

package nonblock

import (
	"io"
	"testing"
)

// The kernel copies a large message for long: the scheduler is told of it.
func TestLargeOnesAreTold(t *testing.T) {
	ours, theirs := pair(t, Wrap)
	c := ours.(*conn)
	go func() { _, _ = io.Copy(theirs, theirs) }()
	for size, told := range map[int]bool{1: false, most: false, most + 1: true, 16 << 20: true} {
		c.in.n, c.out.n = 0, 0
		written := make(chan error, 1)
		go func() {
			_, err := c.Write(make([]byte, size))
			written <- err
		}()
		p := make([]byte, size)
		n, err := c.Read(p)
		if err != nil || (c.in.n == 0) != told {
			t.Errorf("reading %d: %v, told: %v", size, err, c.in.n == 0)
		}
		if _, err := io.ReadFull(c.TCPConn, p[n:]); err != nil {
			t.Fatal(err)
		}
		if err := <-written; err != nil || (c.out.n == 0) != told {
			t.Errorf("writing %d: %v, told: %v", size, err, c.out.n == 0)
		}
	}
}
