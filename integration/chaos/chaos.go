// Package chaos is a proxy between two programs that speak TCP, and breaks the traffic: it holds everything back,
// delays it, cuts connections, refuses new ones, and keeps single messages of PostgreSQL to itself.
package chaos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy listens on loopback and forwards to one address. It begins as one that changes nothing. Its methods may be
// called at any time and concern open connections too.
type Proxy struct {
	target   string
	listener net.Listener
	framed   bool
	running  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	flowing chan struct{} // closed while bytes flow
	refuse  bool
	delay   time.Duration
	kept    map[byte]bool // kinds of messages that are kept back
	cut     func(kind byte, body []byte) bool
	open    map[*link]struct{}
}

// link is one forwarded connection.
type link struct {
	client net.Conn
	broken chan struct{} // closed with it

	mu     sync.Mutex
	over   bool
	server net.Conn // nil: not reached yet
}

// New starts a proxy that ends with the test.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return start(tb, target, false)
}

// NewPostgreSQL starts a proxy in front of a PostgreSQL server that is spoken to without TLS.
func NewPostgreSQL(tb testing.TB, target string) *Proxy {
	tb.Helper()
	return start(tb, target, true)
}

func start(tb testing.TB, target string, framed bool) *Proxy {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{target: target, listener: listener, framed: framed, flowing: make(chan struct{}), open: make(map[*link]struct{})}
	close(p.flowing)
	p.running.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

// Addr returns the address on which the proxy listens, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Pause holds every byte back: connections stay open, new ones are accepted, and no byte arrives.
func (p *Proxy) Pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.flowing:
		p.flowing = make(chan struct{})
	default:
	}
}

// Resume lets bytes flow again, those that were held back first.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resume()
}

func (p *Proxy) resume() {
	select {
	case <-p.flowing:
	default:
		close(p.flowing)
	}
}

// Cut breaks every open connection, with a reset.
func (p *Proxy) Cut() {
	p.mu.Lock()
	links := make([]*link, 0, len(p.open))
	for l := range p.open {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
}

// Refuse resets new connections, or accepts them again.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Delay holds every passing piece back for d, in both directions.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}

// Keep keeps the server's messages of these kinds back for good ('A': notifications); without any, none. For proxies of
// NewPostgreSQL.
func (p *Proxy) Keep(kinds ...byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = make(map[byte]bool, len(kinds))
	for _, kind := range kinds {
		p.kept[kind] = true
	}
}

// CutInstead breaks a connection instead of passing on a message of the server for which cut returns true, for example
// one of CommandComplete ('C', "COMMIT\x00"); nil: none. It is asked about messages of up to 64 bytes, by several
// connections at a time. For proxies of NewPostgreSQL.
func (p *Proxy) CutInstead(cut func(kind byte, body []byte) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
}

// Open returns the number of connections.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open)
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.resume()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.Cut()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			p.running.Go(func() { p.serve(client) })
		}
	}
}

func (p *Proxy) serve(client net.Conn) {
	l := &link{client: client, broken: make(chan struct{})}
	p.mu.Lock()
	refused := p.refuse || p.closed
	if !refused {
		p.open[l] = struct{}{}
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, l)
	}()
	defer l.reset()
	if refused || !p.wait(l) {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	if !l.join(server) {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { p.forward(l, server, client) })
	ways.Go(func() {
		if p.framed {
			p.forwardMessages(l, client, server)
			return
		}
		p.forward(l, client, server)
	})
	ways.Wait()
}

// join gives the link its other end, unless it is broken already.
func (l *link) join(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

// reset breaks the link, and both ends learn of it even when bytes are on their way.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	close(l.broken)
	for _, c := range []net.Conn{l.client, l.server} {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
}

// wait blocks as long as nothing may pass. It returns false when the link is broken.
func (p *Proxy) wait(l *link) bool {
	p.mu.Lock()
	flowing, delay := p.flowing, p.delay
	p.mu.Unlock()
	if delay > 0 {
		late := time.NewTimer(delay)
		defer late.Stop()
		select {
		case <-late.C:
		case <-l.broken:
			return false
		}
	}
	select {
	case <-flowing:
		return true
	case <-l.broken:
		return false
	}
}

// forward copies until either end closes.
func (p *Proxy) forward(l *link, to io.Writer, from io.Reader) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 {
			if !p.wait(l) {
				return
			}
			if _, err := to.Write(piece[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	// The bytes that an end sent before it closed have been passed on: a quiet end is enough, and the other way ends with
	// it.
	for _, c := range []net.Conn{l.client, l.server} {
		_ = c.Close()
	}
}

// forwardMessages does the work of forward for messages of PostgreSQL's server: a kind, a length that counts itself, a
// body (https://www.postgresql.org/docs/current/protocol-message-formats.html).
func (p *Proxy) forwardMessages(l *link, to io.Writer, from io.Reader) {
	read, write := io.Pipe()
	var out sync.WaitGroup
	out.Go(func() {
		p.forward(l, to, read)
		_ = read.Close()
	})
	defer out.Wait()
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			_ = write.CloseWithError(err)
			return
		}
		p.mu.Lock()
		keep, cut := p.kept[head[0]], p.cut
		p.mu.Unlock()
		size := int64(binary.BigEndian.Uint32(head[1:])) - 4
		body := io.LimitReader(from, size)
		var err error
		if cut != nil && size <= 64 {
			small, _ := io.ReadAll(body) // what is missing is noticed with the next message
			if cut(head[0], small) {
				l.reset()
			}
			body = bytes.NewReader(small)
		}
		if keep {
			_, err = io.Copy(io.Discard, body)
		} else if _, err = write.Write(head); err == nil {
			_, err = io.Copy(write, body)
		}
		if err != nil {
			_ = write.CloseWithError(err)
			return
		}
	}
}
