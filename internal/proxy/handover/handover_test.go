package handover

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// patience is far more than anything here takes.
const patience = 20 * time.Second

// site is an address on which servers follow one another.
type site struct {
	t       *testing.T
	sockets Sockets
	address string
	tls     *tls.Config
}

func newSite(t *testing.T) *site { return &site{t: t} }

// server is one of them; its answers carry its name.
type server struct {
	site     *site
	http     *http.Server
	listener *Listener
	served   atomic.Int64
	done     chan struct{}
}

func (s *site) start(name string, handle func(http.ResponseWriter, *http.Request) (more bool)) *server {
	s.t.Helper()
	listener, err := s.sockets.Listen("site", func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	if err != nil {
		s.t.Fatal(err)
	}
	if s.address == "" {
		s.address = listener.Addr().String()
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(s.tls != nil)
	v := &server{site: s, listener: listener, done: make(chan struct{})}
	v.http = &http.Server{
		ConnState: State, ConnContext: Context, Protocols: protocols, ReadHeaderTimeout: patience, IdleTimeout: patience, TLSConfig: s.tls,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v.served.Add(1)
			if handle != nil && !handle(w, r) {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, name)
		}),
	}
	go func() {
		defer close(v.done)
		if s.tls != nil {
			_ = v.http.ServeTLS(listener, "", "")
		} else {
			_ = v.http.Serve(listener)
		}
	}()
	return v
}

// retire ends the server as Caddy's reload does.
func (v *server) retire(ctx context.Context) {
	v.site.t.Helper()
	v.listener.Retire(ctx)
	v.stop()
}

func (v *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := v.http.Shutdown(ctx); err != nil {
		v.site.t.Errorf("shutting down: %v", err)
	}
	<-v.done
}

func short(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// post sends a request that net/http's client never repeats.
func post(client *http.Client, address string) (string, error) {
	request, err := http.NewRequest(http.MethodPost, "http://"+address, struct{ io.Reader }{strings.NewReader("body")})
	if err != nil {
		return "", err
	}
	request.ContentLength = 4
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// wire is a client that writes arbitrary bytes.
type wire struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (s *site) dial() *wire {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &wire{s.t, c, bufio.NewReader(c)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	if _, err := io.WriteString(w.Conn, text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) want(name string) {
	w.t.Helper()
	response, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("instead of an answer of %s: %v", name, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != name {
		w.t.Fatalf("answer of %q (%v) instead of %s", body, err, name)
	}
}

func (w *wire) wantClosed() {
	w.t.Helper()
	if rest, err := io.ReadAll(w.in); late(err) || len(rest) > 0 {
		w.t.Fatalf("the connection is not closed: %q, %v", rest, err)
	}
}

// wantEnd waits until the connection is closed, and ignores everything before.
func (w *wire) wantEnd() {
	w.t.Helper()
	if _, err := io.ReadAll(w.in); late(err) {
		w.t.Fatal("the connection is not closed")
	}
}

// late reports whether err is the test's own deadline.
func late(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// onTheirWay counts the requests that Retire would wait for.
func (l *Listener) onTheirWay() (n int) {
	l.mu.Lock()
	open := l.list()
	l.mu.Unlock()
	for _, c := range open {
		if c.pending() {
			n++
		}
	}
	return n
}

// await waits until so many connections wait for a request: an answer arrives before its server is done with it.
func (v *server) await(want int) {
	v.site.t.Helper()
	for late := time.Now().Add(patience); ; runtime.Gosched() {
		v.listener.mu.Lock()
		open := v.listener.list()
		v.listener.mu.Unlock()
		n := 0
		for _, c := range open {
			c.mu.Lock()
			if c.waiting {
				n++
			}
			c.mu.Unlock()
		}
		if n >= want {
			return
		}
		if time.Now().After(late) {
			v.site.t.Fatalf("%d connections wait instead of %d", n, want)
		}
	}
}

const request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"

// TestSuccession checks that every connection on which no request has begun continues to serve, in whatever state it
// was.
func TestSuccession(t *testing.T) {
	s := newSite(t)
	one := s.start("one", nil)
	kept, unused := s.dial(), s.dial()
	kept.send(request)
	kept.want("one")
	two := s.start("two", nil)
	kept.send(request)
	kept.want("one") // it is still the first
	one.await(2)
	one.retire(short(t, patience))
	kept.send(request)
	kept.want("two")
	unused.send(request)
	unused.want("two")
	fresh := s.dial()
	fresh.send(request)
	fresh.want("two")
	three := s.start("three", nil)
	two.await(3)
	two.stop() // without Retire
	for _, w := range []*wire{kept, unused, fresh} {
		w.send(request)
		w.want("three")
	}
	three.stop()
	for _, w := range []*wire{kept, unused, fresh} {
		w.wantClosed()
	}
	if n := len(s.sockets.open); n != 0 {
		t.Errorf("%d sockets are open", n)
	}
}

// TestSuccessorFails checks that a server that ends before its predecessor has served no request.
func TestSuccessorFails(t *testing.T) {
	s := newSite(t)
	one := s.start("one", nil)
	kept := s.dial()
	two := s.start("two", nil)
	for range 20 {
		w := s.dial()
		w.send(request)
		w.want("one")
	}
	two.stop()
	kept.send(request)
	kept.want("one")
	if two.served.Load() != 0 {
		t.Error("the second was asked")
	}
	one.await(1)
	one.listener.Retire(short(t, patience)) // there is no successor
	kept.send(request)
	kept.want("one")
	one.stop()
}

// TestRequestUnderWay checks that a request is finished where it began, and that its connection is passed on
// afterwards.
func TestRequestUnderWay(t *testing.T) {
	s := newSite(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	one := s.start("one", func(http.ResponseWriter, *http.Request) bool {
		entered <- struct{}{}
		<-leave
		return true
	})
	works, begins := s.dial(), s.dial()
	works.send(request)
	<-entered
	begins.send(request[:30])
	for one.listener.onTheirWay() < 2 {
		runtime.Gosched()
	}
	two := s.start("two", nil)
	retired := make(chan struct{})
	go func() {
		defer close(retired)
		one.listener.Retire(short(t, patience))
	}()
	<-one.listener.left
	fresh := s.dial()
	fresh.send(request)
	fresh.want("two")
	begins.send(request[30:])
	<-entered
	select {
	case <-retired:
		t.Error("it did not wait for the calls")
	default:
	}
	close(leave)
	works.want("one")
	begins.want("one")
	<-retired
	two.await(3)
	one.stop()
	for _, w := range []*wire{works, begins} {
		w.send(request)
		w.want("two")
	}
	two.stop()
}

// TestStream checks that a stream does not delay the succession, and continues.
func TestStream(t *testing.T) {
	s := newSite(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	one := s.start("one", func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "event ")
		_ = http.NewResponseController(w).Flush()
		close(entered)
		<-leave
		return true
	})
	stream := s.dial()
	stream.send(request)
	<-entered
	two := s.start("two", nil)
	if one.listener.onTheirWay() != 0 {
		t.Error("its client could have had it all")
	}
	one.listener.Retire(t.Context())
	close(leave)
	stream.want("event one")
	one.stop()
	two.stop()
}

// TestPipelined checks that a connection whose server holds a part of the next request is never passed on: the rest
// would be read as a request of its own.
func TestPipelined(t *testing.T) {
	smuggled := "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
	for name, second := range map[string]string{
		"a byte": "P", "three": "POS", "a line": "POST / HTTP/1.1\r\n", "all but a line": strings.TrimSuffix(request, "\r\nbody"), "all but the body": strings.TrimSuffix(request, "body"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			one := s.start("one", nil)
			w := s.dial()
			w.send(request + second)
			w.want("one")
			two := s.start("two", nil)
			one.listener.Retire(short(t, 100*time.Millisecond))
			w.send(smuggled)
			one.stop()
			two.stop()
			if n := two.served.Load(); n != 0 {
				t.Errorf("the next server got %d requests of the rest", n)
			}
			w.wantEnd()
		})
	}
	t.Run("a whole request", func(t *testing.T) {
		s := newSite(t)
		one := s.start("one", nil)
		w := s.dial()
		w.send(request + request)
		w.want("one")
		w.want("one")
		one.await(1)
		two := s.start("two", nil)
		one.retire(short(t, patience))
		w.send(request)
		w.want("two")
		two.stop()
	})
}

// TestSealed checks TLS and HTTP/2, which have state above the socket.
func TestSealed(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	t.Run("TLS", func(t *testing.T) {
		s := newSite(t)
		s.tls = certificate.TLS.Clone()
		s.tls.NextProtos = nil
		one := s.start("one", nil)
		kept, unused := s.dial(), s.dial()
		secure := func(w *wire) *wire {
			c := tls.Client(w.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is the test's own
			return &wire{t, c, bufio.NewReader(c)}
		}
		used := secure(kept)
		used.send(request)
		used.want("one")
		two := s.start("two", nil)
		one.retire(short(t, 100*time.Millisecond)) // nothing makes the client leave
		used.wantClosed()
		later := secure(unused)
		later.send(request)
		later.want("two")
		two.stop()
	})
	t.Run("HTTP/2", func(t *testing.T) {
		s := newSite(t)
		one := s.start("one", nil)
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport, Timeout: patience}
		if got, err := post(client, s.address); got != "one" {
			t.Fatal(got, err)
		}
		two := s.start("two", nil)
		one.retire(short(t, patience))
		if got, err := post(client, s.address); got != "two" {
			t.Fatal(got, err)
		}
		transport.CloseIdleConnections()
		two.stop()
	})
}

// TestLeaving checks that over TLS, Retire waits for clients that keep a connection of HTTP/1.1 until they have left,
// and none of their requests is lost.
func TestLeaving(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	s := newSite(t)
	s.tls = certificate.TLS.Clone()
	s.tls.NextProtos = []string{"http/1.1"}
	var leaving atomic.Bool
	one := s.start("one", func(w http.ResponseWriter, _ *http.Request) bool {
		if leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		return true
	})
	var clients [3]*wire
	for i := range clients {
		w := s.dial()
		c := tls.Client(w.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is the test's own
		clients[i] = &wire{t, c, bufio.NewReader(c)}
		clients[i].send(request)
		clients[i].want("one")
	}
	two := s.start("two", nil)
	leaving.Store(true)
	ctx, retired := short(t, patience), make(chan struct{})
	go func() {
		defer close(retired)
		one.retire(ctx)
	}()
	for _, w := range clients {
		select {
		case <-retired:
			t.Fatal("a client still keeps its connection")
		case <-one.listener.left:
		}
		w.send(request)
		w.want("one")
		w.wantClosed()
	}
	<-retired
	if ctx.Err() != nil {
		t.Error("nobody noticed that all clients had left")
	}
	if n := one.served.Load(); n != 6 {
		t.Errorf("%d requests were served", n)
	}
	fresh := s.dial()
	c := tls.Client(fresh.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is the test's own
	again := &wire{t, c, bufio.NewReader(c)}
	again.send(request)
	again.want("two")
	two.stop()
}

// TestHijacked checks that a connection that a handler took is left alone.
func TestHijacked(t *testing.T) {
	s := newSite(t)
	taken := make(chan net.Conn, 1)
	one := s.start("one", func(w http.ResponseWriter, _ *http.Request) bool {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
		}
		taken <- c
		return false
	})
	w := s.dial()
	w.send(request)
	c := <-taken
	two := s.start("two", nil)
	one.retire(short(t, patience))
	if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold"); err != nil {
		t.Fatal(err)
	}
	w.want("old")
	_ = c.Close()
	w.wantClosed()
	two.stop()
}

// TestUnderLoad checks Z-G01: servers follow one another while clients that never repeat a request call on kept and
// on new connections. None of the calls is lost.
func TestUnderLoad(t *testing.T) {
	s := newSite(t)
	current := s.start("0", nil)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	var calls atomic.Int64
	for i := range 16 {
		transport := &http.Transport{DisableKeepAlives: i%4 == 0}
		client := &http.Client{Transport: transport, Timeout: patience}
		callers.Go(func() {
			defer transport.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := post(client, s.address); err != nil {
					t.Errorf("a call is lost: %v", err)
				}
				calls.Add(1)
			}
		})
	}
	for i := range 40 {
		next := s.start(fmt.Sprint(i+1), nil)
		current.retire(short(t, patience))
		current = next
	}
	close(stop)
	callers.Wait()
	current.stop()
	t.Logf("%d calls", calls.Load())
}

// failing is a socket whose Accept fails as often as it is told.
type failing struct {
	net.Listener
	errs chan error
}

func (f *failing) Accept() (net.Conn, error) {
	if err, ok := <-f.errs; ok {
		return nil, err
	}
	return nil, net.ErrClosed
}

func (f *failing) Addr() net.Addr { return &net.TCPAddr{} }

func (f *failing) Close() error {
	close(f.errs)
	return nil
}

// TestErrors checks that errors of the socket reach the server, which knows how to wait.
func TestErrors(t *testing.T) {
	var sockets Sockets
	wrong := errors.New("too many open files")
	if _, err := sockets.Listen("a", func() (net.Listener, error) { return nil, wrong }); !errors.Is(err, wrong) {
		t.Fatal(err)
	}
	real := &failing{errs: make(chan error, 2)}
	l, err := sockets.Listen("a", func() (net.Listener, error) { return real, nil })
	if err != nil {
		t.Fatal(err)
	}
	real.errs <- wrong
	real.errs <- wrong
	for range 2 {
		if _, err := l.Accept(); !errors.Is(err, wrong) {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// BenchmarkRead measures the additional cost of a request over a Conn.
func BenchmarkRead(b *testing.B) {
	c := &Conn{Conn: null{}, listener: &Listener{}}
	buffer := make([]byte, serverBuffer)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Read(buffer)
		State(c, http.StateActive)
		_, _ = c.Write(buffer)
		State(c, http.StateIdle)
	}
}

type null struct{ net.Conn }

func (null) Read(p []byte) (int, error)  { return len(p), nil }
func (null) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRequest measures a request through net/http's server, whose handler waits for others for a moment: a
// background read begins and ends.
func BenchmarkRequest(b *testing.B) {
	var sockets Sockets
	listener, err := sockets.Listen("site", func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") })
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{
		ConnState: State, ReadHeaderTimeout: patience, IdleTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			runtime.Gosched()
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience))
			_, _ = io.WriteString(w, "answer")
		}),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	buffer := make([]byte, serverBuffer)
	b.ReportAllocs()
	before := processorTime()
	for b.Loop() {
		if _, err := io.WriteString(c, request); err != nil {
			b.Fatal(err)
		}
		if n, err := c.Read(buffer); err != nil || !bytes.HasSuffix(buffer[:n], []byte("answer")) {
			b.Fatal(string(buffer[:n]), err)
		}
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
	_ = c.Close()
	_ = server.Close()
	<-done
}

// processorTime returns the CPU time that the process has used so far. On a shared machine it says more than the
// clock.
func processorTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
