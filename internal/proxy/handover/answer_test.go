package handover

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestGoesOn checks that an answer continues when it says that it is chunked and has not written its end.
func TestGoesOn(t *testing.T) {
	const plain, chunked = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, test := range map[string]struct {
		writes []string
		begun  bool
		goesOn bool
	}{
		"nothing":                            {},
		"to be continued":                    {writes: []string{"HTTP/1.1 100 Continue\r\n\r\n"}},
		"a length":                           {writes: []string{plain}, begun: true},
		"a length, and some":                 {writes: []string{plain + "a"}, begun: true},
		"chunks, only the head":              {writes: []string{chunked}, begun: true},
		"chunks":                             {writes: []string{chunked + "1\r\na\r\n"}, begun: true, goesOn: true},
		"chunks after hints":                 {writes: []string{"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", chunked + "1\r\na\r\n"}, begun: true, goesOn: true},
		"the last chunk":                     {writes: []string{chunked + "1\r\na\r\n", "0\r\n\r\n"}, begun: true},
		"the last chunk with trailers":       {writes: []string{chunked + "1\r\na\r\n", "0\r\nA: b\r\n\r\n"}, begun: true},
		"the last chunk in pieces":           {writes: []string{chunked + "1\r\na\r\n0", "\r", "\n", "\r", "\n"}, begun: true},
		"all but the last byte":              {writes: []string{chunked + "1\r\na\r\n0", "\r", "\n\r"}, begun: true, goesOn: true},
		"a chunk that looks like the last":   {writes: []string{chunked + "2\r\n\r\n\r\n"}, begun: true},
		"and another one":                    {writes: []string{chunked + "2\r\n\r\n\r\n", "1\r\na\r\n"}, begun: true, goesOn: true},
		"a body that looks like a head":      {writes: []string{plain + chunked + "a"}, begun: true},
		"a head that is larger than a write": {writes: []string{"HTTP/1.1 200 OK\r\nA: b", chunked + "a"}, begun: true},
		"from a file":                        {writes: []string{plain + "a", ""}, begun: true},
	} {
		t.Run(name, func(t *testing.T) {
			var a answer
			for _, p := range test.writes {
				a.writes([]byte(p))
			}
			if a.begun != test.begun || a.goesOn() != test.goesOn {
				t.Errorf("begun: %v, goes on: %v", a.begun, a.goesOn())
			}
		})
	}
}

// pipes is a socket without a network: time stands still while everybody waits.
type pipes struct {
	dialled chan net.Conn
	closed  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

// TestSlowServer checks that a server that gets no CPU time for long periods loses nothing: neither when a client has
// its answer and the server has not finished the request, nor when it has said that the connection is idle and does
// not read yet, nor when it has read a piece of the next request. The duration does not matter.
func TestSlowServer(t *testing.T) {
	const (
		// slow is far longer than any stretch that Retire could sensibly wait for.
		slow  = time.Minute
		whole = "one"
	)
	answerAtOnce := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "3")
		_, _ = io.WriteString(w, whole)
		_ = http.NewResponseController(w).Flush()
	}
	for name, test := range map[string]struct {
		handle func(http.ResponseWriter)
		idle   func()          // follows the hook
		next   func(io.Writer) // sends the next request, after the first one's answer
		by     string          // answers it
		holds  bool            // Retire waits for it
	}{
		"the handler ends late": {
			handle: func(w http.ResponseWriter) { answerAtOnce(w); time.Sleep(slow) },
			by:     "one", holds: true,
		},
		"the end of the request is late": {
			handle: func(w http.ResponseWriter) { _, _ = io.WriteString(w, whole) },
			idle:   func() { time.Sleep(slow) },
			by:     "two", holds: true,
		},
		"a stream's end is late": {
			handle: func(w http.ResponseWriter) {
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, whole)
			},
			idle: func() { time.Sleep(slow) },
			by:   "two", holds: true,
		},
		"a piece of the next was read": {
			handle: func(w http.ResponseWriter) { time.Sleep(2 * lookAfter); _, _ = io.WriteString(w, whole) },
			next: func(w io.Writer) {
				time.Sleep(slow)
				_, _ = io.WriteString(w, request[1:])
			},
			by: "one", holds: true,
		},
		"nothing is late": {
			handle: func(w http.ResponseWriter) { _, _ = io.WriteString(w, whole) },
			by:     "two",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sockets Sockets
				wires := &pipes{make(chan net.Conn), make(chan struct{})}
				serve := func(by string, handle func(http.ResponseWriter), idle func()) (*Listener, *http.Server) {
					l, err := sockets.Listen("site", func() (net.Listener, error) { return wires, nil })
					if err != nil {
						t.Fatal(err)
					}
					server := &http.Server{
						ReadHeaderTimeout: 10 * slow,
						Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							_, _ = io.Copy(io.Discard, r.Body)
							if handle != nil {
								handle(w)
								handle = nil
								return
							}
							_, _ = io.WriteString(w, by)
						}),
						ConnState: func(c net.Conn, state http.ConnState) {
							State(c, state)
							if state == http.StateIdle && idle != nil {
								idle()
							}
						},
					}
					go func() { _ = server.Serve(l) }()
					return l, server
				}
				one, first := serve("one", test.handle, test.idle)
				client, raw := net.Pipe()
				defer client.Close()
				wires.dialled <- raw
				in := bufio.NewReader(client)
				want := func(by string) {
					t.Helper()
					response, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatalf("no answer of %s: %v", by, err)
					}
					if body, err := io.ReadAll(response.Body); string(body) != by || err != nil {
						t.Fatalf("answer of %q (%v) instead of %s", body, err, by)
					}
				}
				_, _ = io.WriteString(client, request)
				rest := request
				if test.next != nil { // its first byte comes while the handler works
					_, _ = io.WriteString(client, rest[:1])
				}
				want("one")
				synctest.Wait()
				_, second := serve("two", nil, nil)
				defer second.Close()
				defer first.Close()
				began := time.Now()
				shut := make(chan struct{})
				go func() {
					defer close(shut)
					one.Retire(t.Context())
					if held := time.Since(began) > slow/2; held != test.holds {
						t.Errorf("it waited: %v", held)
					}
					_ = first.Shutdown(t.Context())
				}()
				synctest.Wait()
				if test.next == nil {
					test.next = func(w io.Writer) { _, _ = io.WriteString(w, request) }
				}
				test.next(client)
				want(test.by)
				<-shut
			})
		})
	}
}
