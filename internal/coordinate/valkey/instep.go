package valkey

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
)

// errUnasked ends a connection on which the server answers what nobody asked.
var errUnasked = errors.New("the server answers what nobody asked")

// inStep is a connection that ends when an answer comes and no question is open (Z-R02). The client's library panics then,
// in a goroutine of its own, and a server or proxy that is out of step would end the process.
type inStep struct {
	net.Conn

	open          atomic.Int64 // questions without an answer
	asked, answer frames       // of the writer, and of the reader
}

func dialInStep(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	var conn net.Conn
	var err error
	if config == nil {
		conn, err = dialer.DialContext(ctx, network, address)
	} else {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	return &inStep{Conn: conn}, nil
}

// Write counts a question before the server can have it.
func (c *inStep) Write(b []byte) (int, error) {
	c.asked.feed(b, func(byte) bool {
		c.open.Add(1)
		return true
	})
	return c.Conn.Write(b)
}

// Read ends at an answer too many. What the server pushes ('>') answers nothing.
func (c *inStep) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	read, ok := c.answer.feed(b[:n], func(kind byte) bool { return kind == '>' || c.open.Add(-1) >= 0 })
	if !ok {
		return read, errUnasked
	}
	return n, err
}

// frames follows messages of Redis's protocol (https://redis.io/docs/latest/develop/reference/protocol-spec/), which come in
// pieces.
type frames struct {
	values int  // that the present message still has; 0: the next byte begins one
	kind   byte // of the value whose first line is being read; 0: none is
	length int  // that line's number
	body   int  // bytes of a text to come
	broken bool // the number is none
}

// feed goes through the next piece and has begin judge each message by its first byte. It ends where begin says no, and
// tells how far that is.
func (f *frames) feed(b []byte, begin func(kind byte) bool) (int, bool) {
	for i := 0; i < len(b); {
		if f.body > 0 {
			n := min(f.body, len(b)-i)
			f.body -= n
			i += n
			continue
		}
		c := b[i]
		switch {
		case f.kind == 0:
			if f.values == 0 {
				if !begin(c) {
					return i, false
				}
				f.values = 1
			}
			f.kind, f.length, f.broken = c, 0, false
		case c == '\n':
			f.line()
		case c >= '0' && c <= '9' && f.length < 1<<32:
			f.length = 10*f.length + int(c-'0')
		case c != '\r':
			f.broken = true // a text, or -1 for nothing
		}
		i++
	}
	return len(b), true
}

// line takes in the first line of a value.
func (f *frames) line() {
	f.values--
	if !f.broken {
		switch f.kind {
		case '$', '=', '!':
			f.body = f.length + len("\r\n")
		case '*', '~', '>':
			f.values += f.length
		case '%':
			f.values += 2 * f.length
		case '|': // attributes come before what they belong to
			f.values += 2*f.length + 1
		}
	}
	f.kind = 0
}
