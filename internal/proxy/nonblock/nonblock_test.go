package nonblock

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pair returns both ends of a connection.
func pair(t testing.TB, wrap func(net.Conn) net.Conn) (ours net.Conn, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		dialled.Close()
		accepted.Close()
	})
	return wrap(dialled), accepted.(*net.TCPConn)
}

func TestOnlySocketsAreWrapped(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if Wrap(a) != a || Wrap(nil) != nil {
		t.Error("something else was wrapped")
	}
	ours, _ := pair(t, Wrap)
	if _, ok := ours.(syscall.Conn); !ok {
		t.Error("the wrapped connection hides its socket")
	}
	if _, ok := ours.(interface{ CloseWrite() error }); !ok {
		t.Error("the wrapped connection cannot be closed for writing alone")
	}
}

// TestManyBytes carries more than the socket's buffers hold, both ways at once, in pieces of every size.
func TestManyBytes(t *testing.T) {
	ours, theirs := pair(t, Wrap)
	sent := make([]byte, 8<<20)
	_, _ = rand.Read(sent)
	var wg sync.WaitGroup
	wg.Go(func() { // echoes
		_, _ = io.Copy(theirs, theirs)
		_ = theirs.CloseWrite()
	})
	wg.Go(func() {
		if n, err := ours.Write(sent); n != len(sent) || err != nil {
			t.Errorf("wrote %d: %v", n, err)
		}
		if err := ours.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	var got []byte
	p := make([]byte, 70_000)
	for size := 1; ; size = size*3%len(p) + 1 {
		n, err := ours.Read(p[:size])
		got = append(got, p[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil || n == 0 {
			t.Fatalf("read %d: %v", n, err)
		}
	}
	wg.Wait()
	if !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d, or others", len(got), len(sent))
	}
	if n, err := ours.Read(nil); n != 0 || err != nil {
		t.Errorf("reading nothing: %d, %v", n, err)
	}
	if n, err := ours.Read(p); n != 0 || err != io.EOF {
		t.Errorf("after the end: %d, %v", n, err)
	}
}

// TestErrors expects the errors of package net.
func TestErrors(t *testing.T) {
	p := make([]byte, 1<<20)
	for name, test := range map[string]struct {
		before func(ours net.Conn, theirs *net.TCPConn)
		call   func(net.Conn) error
		op     string
		is     error
	}{
		"read after the deadline": {
			func(ours net.Conn, _ *net.TCPConn) { _ = ours.SetReadDeadline(time.Unix(1, 0)) },
			func(c net.Conn) error { _, err := c.Read(p); return err }, "read", os.ErrDeadlineExceeded,
		},
		"write after the deadline": {
			func(ours net.Conn, _ *net.TCPConn) { _ = ours.SetWriteDeadline(time.Unix(1, 0)) },
			func(c net.Conn) error { _, err := c.Write(p); return err }, "write", os.ErrDeadlineExceeded,
		},
		"read from a closed one": {
			func(ours net.Conn, _ *net.TCPConn) { ours.Close() },
			func(c net.Conn) error { _, err := c.Read(p); return err }, "read", net.ErrClosed,
		},
		"write to a closed one": {
			func(ours net.Conn, _ *net.TCPConn) { ours.Close() },
			func(c net.Conn) error { _, err := c.Write(p); return err }, "write", net.ErrClosed,
		},
		"read from one that was reset": {
			func(_ net.Conn, theirs *net.TCPConn) {
				_ = theirs.SetLinger(0)
				theirs.Close()
			},
			func(c net.Conn) error { _, err := c.Read(p); return err }, "read", syscall.ECONNRESET,
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t, Wrap)
			test.before(ours, theirs)
			err := test.call(ours)
			var told *net.OpError
			if !errors.As(err, &told) || told.Op != test.op || told.Net != "tcp" || !errors.Is(err, test.is) {
				t.Errorf("%v", err)
			}
			if timeout := errors.Is(test.is, os.ErrDeadlineExceeded); told != nil && told.Timeout() != timeout {
				t.Errorf("a timeout: %v", told.Timeout())
			}
		})
	}
}

// TestWriteGoesOn expects a write whose deadline passes to report how many bytes have left, and the next write to go on
// from there.
func TestWriteGoesOn(t *testing.T) {
	ours, theirs := pair(t, Wrap)
	sent := make([]byte, 16<<20)
	_, _ = rand.Read(sent)
	_ = ours.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	n, err := ours.Write(sent)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == len(sent) {
		t.Fatalf("%d of %d: %v", n, len(sent), err)
	}
	_ = ours.SetWriteDeadline(time.Time{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if more, err := ours.Write(sent[n:]); err != nil || n+more != len(sent) {
			t.Errorf("%d after %d: %v", more, n, err)
		}
		ours.Close()
	})
	got, err := io.ReadAll(theirs)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d, %v", len(got), len(sent), err)
	}
	wg.Wait()
}

// TestWaitingEnds closes a connection, or moves its deadline, while reads and writes wait.
func TestWaitingEnds(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":   func(c net.Conn) { c.Close() },
		"deadline": func(c net.Conn) { _ = c.SetDeadline(time.Unix(1, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			ours, _ := pair(t, Wrap)
			var started, ended sync.WaitGroup
			started.Add(3)
			for range 2 { // one waits for the other
				ended.Go(func() {
					started.Done()
					if n, err := ours.Read(make([]byte, 1)); n != 0 || err == nil {
						t.Errorf("read %d: %v", n, err)
					}
				})
			}
			ended.Go(func() {
				started.Done()
				if _, err := ours.Write(make([]byte, 64<<20)); err == nil {
					t.Error("wrote what nobody has read")
				}
			})
			started.Wait()
			end(ours)
			ended.Wait()
		})
	}
}

func BenchmarkWriteRead(b *testing.B) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{"ours": Wrap, "net": func(c net.Conn) net.Conn { return c }} {
		b.Run(name, func(b *testing.B) {
			from, to := pair(b, wrap)
			reader := wrap(to)
			p := make([]byte, 200)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := from.Write(p); err != nil {
					b.Fatal(err)
				}
				if _, err := reader.Read(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
