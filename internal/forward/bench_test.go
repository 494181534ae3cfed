package forward

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

var clientHeader = http.Header{
	"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2025-11-25"},
	"Mcp-Session-Id": {"sealed"}, "User-Agent": {"tester/1"}, "Authorization": {"Bearer x"}, "Content-Length": {"220"}, "Accept-Encoding": {"gzip"},
}

func BenchmarkRequestHeader(b *testing.B) {
	r := &Request{Header: clientHeader, SessionID: "up-1", Body: []byte("{}")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := requestHeader(r); err != nil {
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

// BenchmarkRoundTrip compares a whole hop over loopback, client to gateway to upstream, with the least a net/http proxy
// can do. Run it with -cpu 1.
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

// hop is the least handler over a forwarder that carries a credential.
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

// floor is the least a net/http proxy can do: no bounds, no judgement, every header.
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
