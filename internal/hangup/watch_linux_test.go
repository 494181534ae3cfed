package hangup

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is far more than anything here takes.
const patience = 20 * time.Second

// pair is both ends of a connection.
func pair(t *testing.T) (here, there *net.TCPConn) {
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
	t.Cleanup(func() { _, _ = dialled.Close(), accepted.Close() })
	return accepted.(*net.TCPConn), dialled.(*net.TCPConn)
}

// watched is a connection's end whose other side is watched, and what is told of it.
func watched(t *testing.T) (here, there *net.TCPConn, gone <-chan struct{}, stop func()) {
	t.Helper()
	here, there = pair(t)
	told := make(chan struct{}, 8)
	stop, err := Watch(here, func() { told <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	return here, there, told, stop
}

func await(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("nobody was told")
	}
}

func TestGone(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn) error{
		"closed":      (*net.TCPConn).Close,
		"half closed": (*net.TCPConn).CloseWrite,
		"reset":       func(c *net.TCPConn) error { _ = c.SetLinger(0); return c.Close() },
		"closed behind bytes that nobody reads": func(c *net.TCPConn) error {
			if _, err := io.WriteString(c, "GET"); err != nil {
				return err
			}
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, there, gone, stop := watched(t)
			defer stop()
			if err := leave(there); err != nil {
				t.Fatal(err)
			}
			await(t, gone)
		})
	}
	t.Run("before it was watched", func(t *testing.T) {
		here, there := pair(t)
		_ = there.Close()
		if _, err := here.Read(make([]byte, 1)); err == nil { // the end has come
			t.Fatal("read")
		}
		gone := make(chan struct{})
		stop, err := Watch(here, func() { close(gone) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		await(t, gone)
	})
}

// TestOthers: one connection's end is not another's, bytes are no end, and nobody is told after stop, also when the
// descriptor is another connection's by then.
func TestOthers(t *testing.T) {
	_, writes, written, stopWritten := watched(t)
	defer stopWritten()
	if _, err := io.WriteString(writes, "GET"); err != nil {
		t.Fatal(err)
	}
	stopped, leaves, left, stop := watched(t)
	stop()
	_ = leaves.Close()
	_ = stopped.Close()
	_, closes, closed, stopClosed := watched(t)
	defer stopClosed()
	_ = closes.Close()
	await(t, closed)
	if len(written) > 0 || len(left) > 0 || len(closed) > 0 {
		t.Errorf("told of bytes %d times, after the end %d times, again %d times", len(written), len(left), len(closed))
	}
}

// TestMany: everybody is told, also when more ends come than are asked for at a time, and others come and go meanwhile.
func TestMany(t *testing.T) {
	const many = 200
	told := make(chan int, 2*many)
	var leaving []*net.TCPConn
	for n := range many {
		here, there := pair(t)
		stop, err := Watch(here, func() { told <- n })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		leaving = append(leaving, there)
	}
	go func() {
		for _, c := range leaving {
			_ = c.Close()
		}
	}()
	seen := make(map[int]bool)
	for range many {
		_, _, _, stop := watched(t)
		stop()
		select {
		case n := <-told:
			seen[n] = true
		case <-time.After(patience):
			t.Fatalf("%d of %d were told", len(seen), many)
		}
	}
	if len(seen) != many {
		t.Errorf("%d of %d were told, some twice", len(seen), many)
	}
}

// TestComeAndGo: the goroutine that everybody shares ends with the last, and is there again for the next.
func TestComeAndGo(t *testing.T) {
	for range 100 {
		_, there, gone, stop := watched(t)
		_ = there.Close()
		await(t, gone)
		stop()
	}
}

func TestClosed(t *testing.T) {
	here, _ := pair(t)
	_ = here.Close()
	if stop, err := Watch(here, func() {}); err == nil {
		stop()
		t.Error("watches a closed connection")
	}
	here, _, _, stop := watched(t)
	_ = here.Close()
	stop()
	stop()
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if stop, err := Watch(file, func() {}); err == nil {
		stop()
		t.Error("watches a file")
	}
	goleak.VerifyNone(t)
}
