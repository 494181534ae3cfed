package handover

import (
	"crypto/tls"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Unheard has the system end a connection whose other end has not answered for so long, although it was sent data or
// TCP keep-alive probes. Without it, a vanished client keeps an event stream that sends now and then for a quarter of
// an hour (W02, RFC 5482). It must be called from the hook ConnContext of the server.
func Unheard(c net.Conn, after time.Duration) {
	if over, secure := c.(*tls.Conn); secure {
		c = over.NetConn()
	}
	if own, ok := c.(*Conn); ok {
		c = own.Conn
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	// A connection that is not TCP has no such option, and needs none.
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
	})
}
