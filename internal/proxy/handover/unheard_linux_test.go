package handover

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestUnheard checks W02: a connection ends when its client does not even acknowledge received data any more, with or
// without something to send to it.
func TestUnheard(t *testing.T) {
	for name, text := range map[string]string{"silent": "", "sending": "x"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			every := net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second}
			var sockets Sockets
			listener, err := sockets.Listen("site", func() (net.Listener, error) {
				return (&net.ListenConfig{KeepAliveConfig: every}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			})
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			client, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			c, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			Unheard(c, time.Second)
			deafen(t, client.(*net.TCPConn))
			if _, err := c.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(patience))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ETIMEDOUT) {
				t.Errorf("the client that is gone reads as %v", err)
			}
		})
	}
}

// deafen makes the system drop everything that comes for a connection, as if its machine had vanished.
func deafen(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := &unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}}
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, nothing)
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
}
