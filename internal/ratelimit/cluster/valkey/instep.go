package valkey

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
)

// errUnasked ends a connection on which the server sends an answer without a question.
var errUnasked = errors.New("the server answers what nobody asked")

// inStep is a connection that ends when an answer comes while no question is open (Z-R02). Otherwise the client library
// would panic in a goroutine of its own, and a server or proxy that is out of step would end the process.
type inStep struct {
	net.Conn

	open          atomic.Int64 // questions without an answer
	asked, answer frames       // asked belongs to the writer, answer to the reader
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

// Read ends the connection at a surplus answer. Messages that the server pushes ('>') are not answers.
func (c *inStep) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	read, ok := c.answer.feed(b[:n], func(kind byte) bool { return kind == '>' || c.open.Add(-1) >= 0 })
	if !ok {
		return read, errUnasked
	}
	return n, err
}

// frames follows the messages of Redis's protocol (https://redis.io/docs/latest/develop/reference/protocol-spec/),
// which arrive in pieces.
type frames struct {
	values int  // values that the present message still lacks; 0: the next byte begins a message
	kind   byte // kind of the value whose first line is being read; 0: none
	length int  // number in that line
	body   int  // remaining bytes of a text
	broken bool // the number is invalid
}

// feed reads the next piece and calls begin with the first byte of each message. It stops where begin returns false,
// and returns the number of bytes read.
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
			f.broken = true // a text, or -1 for no value
		}
		i++
	}
	return len(b), true
}

// line handles the first line of a value.
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
		case '|': // attributes come before the value that they belong to
			f.values += 2*f.length + 1
		}
	}
	f.kind = 0
}
