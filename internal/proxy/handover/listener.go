package handover

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/nonblock"
)

// Sockets holds the listening sockets of the process. The zero value is ready.
type Sockets struct {
	mu   sync.Mutex
	open map[string]*socket
}

// socket is a listening socket. It is open as long as a listener is in line.
type socket struct {
	sockets *Sockets
	key     string
	real    net.Listener
	// line holds the listeners in the order in which they came, guarded by Sockets.mu. The first one gets new
	// connections: a listener whose configuration fails later has served no request.
	line []*Listener
}

// Listen returns a listener on the socket that key names. When it is not open yet, open opens it.
func (s *Sockets) Listen(key string, open func() (net.Listener, error)) (*Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shared := s.open[key]
	if shared == nil {
		real, err := open()
		if err != nil {
			return nil, err
		}
		shared = &socket{sockets: s, key: key, real: real}
		if s.open == nil {
			s.open = make(map[string]*socket)
		}
		s.open[key] = shared
		go shared.accept()
	}
	l := &Listener{socket: shared, incoming: make(chan arrival), left: make(chan struct{}), closed: make(chan struct{}), connections: make(map[*Conn]struct{})}
	shared.line = append(shared.line, l)
	return l, nil
}

// arrival holds a connection for the first listener in line, or the reason why there is none.
type arrival struct {
	raw   net.Conn
	begun []byte // read from it already, and not processed
	err   error
}

func (s *socket) accept() {
	for {
		raw, err := s.real.Accept()
		if !s.give(arrival{raw: nonblock.Wrap(raw), err: err}) {
			return
		}
	}
}

// give waits until the first listener in line takes a. It reports whether any listener was in line; else the
// connection is closed.
func (s *socket) give(a arrival) bool {
	for {
		first := s.first()
		if first == nil {
			if a.raw != nil {
				_ = a.raw.Close()
			}
			return false
		}
		select {
		case first.incoming <- a:
			return true
		case <-first.left:
		}
	}
}

func (s *socket) first() *Listener {
	s.sockets.mu.Lock()
	defer s.sockets.mu.Unlock()
	if len(s.line) == 0 {
		return nil
	}
	return s.line[0]
}

// Listener is one server's view of a shared socket.
type Listener struct {
	socket   *socket
	incoming chan arrival
	left     chan struct{} // closed when it is no longer in line
	closed   chan struct{}
	leave    sync.Once
	shut     sync.Once

	mu          sync.Mutex
	connections map[*Conn]struct{}
	retired     bool
	lookouts    []*Conn // with a background read that waits
}

// Accept implements net.Listener. The connections are *Conn.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case a := <-l.incoming:
		if a.err != nil {
			return nil, a.err
		}
		return l.add(a), nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: l.Addr().Network(), Addr: l.Addr(), Err: net.ErrClosed}
	}
}

func (l *Listener) add(a arrival) *Conn {
	c := &Conn{Conn: a.raw, listener: l, begun: a.begun}
	c.roused.L = &c.mu
	l.mu.Lock()
	defer l.mu.Unlock()
	c.retiring = l.retired // it came while the listener left the line
	l.connections[c] = struct{}{}
	return c
}

func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	delete(l.connections, c)
	l.mu.Unlock()
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.socket.real.Addr() }

// Close implements net.Listener. The socket is closed with its last listener.
func (l *Listener) Close() error {
	err := net.ErrClosed
	l.shut.Do(func() {
		err = l.leaveLine()
		close(l.closed)
		l.passOn()
	})
	return err
}

// leaveLine takes the listener out of the line: the next one gets new connections.
func (l *Listener) leaveLine() (err error) {
	l.leave.Do(func() {
		s := l.socket
		s.sockets.mu.Lock()
		s.line = slices.DeleteFunc(s.line, func(other *Listener) bool { return other == l })
		if len(s.line) == 0 {
			delete(s.sockets.open, s.key)
			err = s.real.Close()
		}
		s.sockets.mu.Unlock()
		close(l.left)
	})
	return err
}

// passOn tells every connection to go to the next listener as soon as no request is on it.
func (l *Listener) passOn() {
	l.mu.Lock()
	l.retired = true
	open := l.list()
	l.mu.Unlock()
	for _, c := range open {
		c.retire()
	}
}

// list returns the connections. It is called with the lock held: connections have a lock of their own, and hold it
// while they ask to be forgotten.
func (l *Listener) list() []*Conn {
	open := make([]*Conn, 0, len(l.connections))
	for c := range l.connections {
		open = append(open, c)
	}
	return open
}

// Timing of Retire.
const (
	// lookEvery is the time between two checks of the state of the requests.
	lookEvery = 5 * time.Millisecond
	// settle is the number of those checks that an answer over TLS gets to finish; its end cannot be observed.
	settle = 10
)

// Retire lets the next listener take over: that one gets new connections from now on, and those on which no request
// has begun are passed on to it. Retire returns when no request is between its first byte and the end of its answer
// (except streams) and no client keeps a connection that cannot be passed on; at the latest when ctx ends. The server
// of the listener should be shut down then. Without a next listener it does nothing.
func (l *Listener) Retire(ctx context.Context) {
	if !l.succeeded() {
		return
	}
	_ = l.leaveLine() // another listener is in line: nothing is closed
	l.passOn()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for looks := 0; ; {
		switch {
		case l.any((*Conn).pending) || l.any((*Conn).kept):
			looks = 0
		case looks < settle && l.any((*Conn).veiled):
			looks++
		default:
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// succeeded reports whether another listener is in line.
func (l *Listener) succeeded() bool {
	l.socket.sockets.mu.Lock()
	defer l.socket.sockets.mu.Unlock()
	return slices.ContainsFunc(l.socket.line, func(other *Listener) bool { return other != l })
}

// any reports whether is returns true for some connection.
func (l *Listener) any(is func(*Conn) bool) bool {
	l.mu.Lock()
	open := l.list()
	l.mu.Unlock()
	return slices.ContainsFunc(open, is)
}
