package forward

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

var clientHeader = http.Header{
	"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2025-11-25"},
	"Mcp-Session-Id": {"sealed"}, "User-Agent": {"tester/1"}, "Authorization": {"Bearer x"}, "Content-Length": {"220"}, "Accept-Encoding": {"gzip"},
}

func BenchmarkRequestHeader(b *testing.B) {
	r := &Request{Header: clientHeader, SessionID: "up-1", Body: []byte("{}")}
	var spare [24]http1.Field
	b.ReportAllocs()
	for b.Loop() {
		if _, err := requestFields(spare[:0], r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEventSize(b *testing.B) {
	for name, unit := range map[string]string{"event of 200 B": "event: message\ndata: " + strings.Repeat("x", 200) + "\n\n", "bare CR": "\r", "LF": "\n"} {
		b.Run(name, func(b *testing.B) {
			p := []byte(strings.Repeat(unit, (2<<10)/len(unit)))
			b.SetBytes(int64(len(p)))
			var s eventSize
			for b.Loop() {
				s.Add(p)
			}
		})
	}
}

// BenchmarkRoundTrip compares a whole hop over loopback, from client to gateway to upstream, with the least work of a
// net/http proxy. Run it with -cpu 1.
func BenchmarkRoundTrip(b *testing.B) {
	for _, shape := range []struct {
		name, media string
		size        int
	}{{"JSON 220 B", "application/json", 220}, {"JSON 10 KB", "application/json", 10 << 10}, {"events", "text/event-stream", 220}} {
		answer := bytes.Repeat([]byte("x"), shape.size)
		if shape.media == "text/event-stream" {
			answer = []byte("event: message\ndata: " + string(answer) + "\n\n")
		}
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", shape.media)
			if shape.media == "application/json" {
				w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
			}
			_, _ = w.Write(answer)
			if shape.media == "text/event-stream" {
				_ = http.NewResponseController(w).Flush()
			}
		}))
		target := mustURL(up.URL + "/mcp")
		netHTTP, _ := overNetHTTP.forwarder(b, Options{}, Limits{})
		own, _ := overHTTP1.forwarder(b, Options{}, Limits{})
		body := bytes.Repeat([]byte("x"), shape.size)
		for _, side := range []struct {
			name string
			h    http.HandlerFunc
		}{
			{"floor", floor(target.Host)},
			{"forward over net/http", hop(b, netHTTP, target)},
			{"forward over http1", hop(b, own, target)},
		} {
			b.Run(shape.name+"/"+side.name, func(b *testing.B) {
				front := httptest.NewServer(side.h)
				defer front.Close()
				conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close()
				var head bytes.Buffer
				req, _ := http.NewRequest("POST", front.URL, bytes.NewReader(body))
				for k, v := range clientHeader {
					if k != "Content-Length" {
						req.Header[k] = v
					}
				}
				_ = req.Write(&head)
				in := bufio.NewReader(conn)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := conn.Write(head.Bytes()); err != nil {
						b.Fatal(err)
					}
					res, err := http.ReadResponse(in, nil)
					if err != nil {
						b.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, res.Body); err != nil || n != int64(len(answer)) {
						b.Fatal(n, err)
					}
				}
			})
		}
		up.Close()
	}
}

// hop returns the smallest handler over a forwarder that carries a credential.
func hop(b *testing.B, f *Forwarder, target *url.URL) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := ReadBody(r, 4<<20)
		if err != nil {
			b.Error(err)
			return
		}
		res, err := f.Do(r.Context(), &Request{Method: "POST", URL: target, Header: r.Header, Body: body, Credential: bearer("t")})
		if err != nil {
			b.Error(err)
			return
		}
		defer res.Close()
		res.CopyHeader(w.Header())
		if err := res.Relay(w, 16<<20); err != nil {
			b.Error(err)
		}
	}
}

// floor returns the smallest net/http proxy: no bounds, no checks, every header.
func floor(host string) http.HandlerFunc {
	tr := &http.Transport{MaxIdleConnsPerHost: 512, ReadBufferSize: 4 << 10, WriteBufferSize: 16 << 10, DisableCompression: true}
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host, out.RequestURI = "http", host, ""
		out.Body = io.NopCloser(bytes.NewReader(body))
		res, err := tr.RoundTrip(out)
		if err != nil {
			panic(err)
		}
		defer res.Body.Close()
		for k, v := range res.Header {
			w.Header()[k] = v
		}
		w.WriteHeader(res.StatusCode)
		stream := strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
		p := make([]byte, 2048)
		for {
			n, err := res.Body.Read(p)
			if n > 0 {
				_, _ = w.Write(p[:n])
				if stream {
					_ = http.NewResponseController(w).Flush()
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// BenchmarkForward makes a whole forwarded call without a system call. It reads the client's body, sends the request to
// an upstream in memory, reads the whole answer, as the filter of lists does, and writes it to the client.
func BenchmarkForward(b *testing.B) {
	for _, shape := range []struct {
		name string
		size int
	}{{"220 B", 220}, {"10 KB", 10 << 10}} {
		text := strings.Repeat("x", shape.size)
		answer := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: " + strconv.Itoa(shape.size) + "\r\n\r\n" + text
		for _, whole := range []bool{true, false} {
			name := shape.name + "/passed on"
			if whole {
				name = shape.name + "/read whole"
			}
			b.Run(name, func(b *testing.B) {
				up, err := overHTTP1.build(echoing(answer), Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer up.CloseIdleConnections()
				f := New(up, Limits{})
				target := mustURL("http://up.test/mcp")
				ctx, cancel := context.WithCancelCause(b.Context())
				defer cancel(nil)
				body := &again{text: text}
				in := &http.Request{Method: "POST", Header: clientHeader, Body: body, ContentLength: int64(len(text))}
				w := &discarding{header: http.Header{}}
				credential := bearer("eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLnRlc3QifQ.x")
				b.ReportAllocs()
				for b.Loop() {
					clear(w.header)
					w.n, body.at = 0, 0
					read, err := ReadBody(in, 4<<20)
					if err != nil {
						b.Fatal(err)
					}
					res, err := f.Do(ctx, &Request{Method: "POST", URL: target, Header: in.Header, SessionID: "up-1", Body: read, Credential: credential, HTTP1: true, Cancel: cancel})
					if err != nil {
						b.Fatal(err)
					}
					res.CopyHeader(w.header)
					if whole {
						all, err := res.ReadAll(1 << 20)
						if err != nil {
							b.Fatal(err)
						}
						res.SetBody(all)
					}
					if err := res.Relay(w, 16<<20); err != nil || w.n != shape.size {
						b.Fatal(w.n, err)
					}
					res.Close()
				}
			})
		}
	}
}

// echoing dials connections on which every request gets the same answer, without a system call.
type echoing string

func (e echoing) DialContext(context.Context, string, string) (net.Conn, error) {
	return &echo{answer: string(e)}, nil
}

func (e echoing) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return e.DialContext(ctx, network, addr)
}

// echo is such a connection. It takes each write as one request.
type echo struct {
	net.Conn
	answer, left string
}

func (c *echo) Write(p []byte) (int, error) {
	c.left = c.answer
	return len(p), nil
}

func (c *echo) Read(p []byte) (int, error) {
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

func (c *echo) Close() error                     { return nil }
func (c *echo) SetReadDeadline(time.Time) error  { return nil }
func (c *echo) SetWriteDeadline(time.Time) error { return nil }
func (c *echo) SetDeadline(time.Time) error      { return nil }

// again is a body that can be read again from its beginning.
type again struct {
	text string
	at   int
}

func (a *again) Read(p []byte) (int, error) {
	n := copy(p, a.text[a.at:])
	if a.at += n; a.at == len(a.text) {
		return n, io.EOF
	}
	return n, nil
}

func (a *again) Close() error { return nil }

// discarding is a client that counts bytes.
type discarding struct {
	header http.Header
	n      int
}

func (w *discarding) Header() http.Header              { return w.header }
func (w *discarding) WriteHeader(int)                  {}
func (w *discarding) SetWriteDeadline(time.Time) error { return nil }

func (w *discarding) Write(p []byte) (int, error) {
	w.n += len(p)
	return len(p), nil
}
