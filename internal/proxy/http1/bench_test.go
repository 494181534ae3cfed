package http1_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// loopback dials freely.
type loopback struct{}

func (loopback) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

func (loopback) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

// answering returns an upstream that costs as little as one can: it looks for the length, reads the body and says answer.
func answering(b *testing.B, answer []byte) *url.URL {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	b.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				r := bufio.NewReaderSize(c, 16<<10)
				for {
					length := 0
					for {
						line, err := r.ReadSlice('\n')
						if err != nil {
							return
						}
						if n, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
							length, _ = strconv.Atoi(string(bytes.TrimSpace(n)))
						}
						if len(line) == 2 {
							break
						}
					}
					if _, err := r.Discard(length); err != nil {
						return
					}
					if _, err := c.Write(answer); err != nil {
						return
					}
				}
			})
		}
	})
	return &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/mcp"}
}

// BenchmarkRoundTrip sends a POST, as the forwarder makes it, over each client in turn. The other costs of an
// operation, such as the upstream and the kernel, are the same for all. Run it with -cpu 1 and several -count.
func BenchmarkRoundTrip(b *testing.B) {
	header := http.Header{
		"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2025-11-25"}, "User-Agent": {"tester/1"},
		"Authorization": {"Bearer eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLnRlc3QifQ.x"}, "Accept-Encoding": {"identity"}, "Mcp-Session-Id": {"up-1"},
	}
	json := func(n int) []byte {
		return append([]byte("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: "+strconv.Itoa(n)+"\r\n\r\n"), bytes.Repeat([]byte("x"), n)...)
	}
	event := "event: message\ndata: " + string(bytes.Repeat([]byte("x"), 200)) + "\n\n"
	events := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n" +
		strconv.FormatInt(int64(len(event)), 16) + "\r\n" + event + "\r\n0\r\n\r\n")
	for _, shape := range []struct {
		name   string
		size   int
		answer []byte
	}{{"220 B, JSON", 220, json(220)}, {"2 KB, JSON", 2 << 10, json(2 << 10)}, {"10 KB, JSON", 10 << 10, json(10 << 10)}, {"220 B, events", 220, events}} {
		target := answering(b, shape.answer)
		body := bytes.Repeat([]byte("x"), shape.size)
		transports, err := forward.NewTransports(loopback{}, forward.Options{})
		if err != nil {
			b.Fatal(err)
		}
		client := http1.New(loopback{}, http1.Options{})
		plain := &http.Transport{}
		for _, side := range []struct {
			name string
			rt   http.RoundTripper
		}{{"http1", client}, {"Transports", transports}, {"http.Transport", plain}} {
			b.Run(shape.name+"/"+side.name, func(b *testing.B) {
				b.ReportAllocs()
				p := make([]byte, 16<<10)
				before := processorTime()
				defer func() { b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op") }()
				for b.Loop() {
					// The forwarder's context, too, can be cancelled.
					ctx, cancel := context.WithCancelCause(b.Context())
					r := (&http.Request{Method: "POST", URL: target, Host: target.Host, Header: header, ContentLength: int64(len(body)),
						Body: io.NopCloser(bytes.NewReader(body))}).WithContext(ctx)
					r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
					res, err := side.rt.RoundTrip(r)
					if err != nil {
						b.Fatal(err)
					}
					for err == nil {
						_, err = res.Body.Read(p)
					}
					if err != io.EOF {
						b.Fatal(err)
					}
					_ = res.Body.Close()
					cancel(nil)
				}
			})
		}
		b.Run(shape.name+"/nothing but the kernel", func(b *testing.B) {
			c, err := net.Dial("tcp", target.Host)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			request := append([]byte("POST /mcp HTTP/1.1\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"), body...)
			p := make([]byte, 32<<10)
			before := processorTime()
			defer func() { b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op") }()
			for b.Loop() {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				for got := 0; got < len(shape.answer); {
					n, err := c.Read(p)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
		})
		client.CloseIdleConnections()
		transports.CloseIdleConnections()
		plain.CloseIdleConnections()
	}
}

// processorTime returns the CPU time that the process has used so far. On a shared machine it says more than the
// clock.
func processorTime() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkIdleStreams opens streams that wait and reports the memory of the process for each: the client's part and,
// the same for all, two sockets and the context.
func BenchmarkIdleStreams(b *testing.B) {
	const streams = 2000
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	accepted := make(chan net.Conn)
	var wg sync.WaitGroup
	b.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p := make([]byte, 1024)
			_, _ = c.Read(p)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
			accepted <- c
		}
	})
	transports, err := forward.NewTransports(loopback{}, forward.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, side := range []struct {
		name string
		rt   http.RoundTripper
	}{{"http1", http1.New(loopback{}, http1.Options{})}, {"Transports", transports}, {"http.Transport", &http.Transport{}}} {
		b.Run(side.name, func(b *testing.B) {
			for b.Loop() {
				before := inUse()
				var open []io.Closer
				p := make([]byte, 2<<10)
				for range streams {
					r := (&http.Request{Method: "GET", URL: &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/mcp"}, Header: http.Header{"User-Agent": {"x"}}}).WithContext(b.Context())
					res, err := side.rt.RoundTrip(r)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := res.Body.Read(p); err != nil {
						b.Fatal(err)
					}
					open = append(open, res.Body, <-accepted)
				}
				b.ReportMetric(float64(inUse()-before)/streams, "B/stream")
				for _, c := range open {
					_ = c.Close()
				}
			}
		})
	}
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
