package http1

import (
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// Requests are built in these. A request without a body has nothing but headers.
const (
	smallRequest = 4 << 10
	largeRequest = 16 << 10 // what leaves in one write, body included
)

var (
	smallRequests = sync.Pool{New: func() any { b := make([]byte, 0, smallRequest); return &b }}
	largeRequests = sync.Pool{New: func() any { b := make([]byte, 0, largeRequest); return &b }}
)

// outgoing is a checked request: its first write, and what is left of its body.
type outgoing struct {
	first *[]byte // head, and as much of the body as fits; nil when it was released
	pool  *sync.Pool
	rest  int64
	body  io.ReadCloser // nil when it is read and closed
}

func (o *outgoing) release() {
	if o.first != nil {
		*o.first = (*o.first)[:0]
		if cap(*o.first) <= largeRequest {
			o.pool.Put(o.first)
		}
		o.first = nil
	}
}

func (o *outgoing) closeBody() {
	if o.body != nil {
		_ = o.body.Close()
		o.body = nil
	}
}

// prepare checks r and writes it into a buffer. Everything a byte of the request could be is decided before the first one
// leaves: no value can end a line (H08), and the body has the length that is announced.
func prepare(r *http.Request, last bool) (o outgoing, err error) {
	if r.Body != nil && r.Body != http.NoBody {
		o.body = r.Body
	}
	defer func() {
		if err != nil {
			o.closeBody()
			o.release()
		}
	}()
	if err := check(r, o.body != nil); err != nil {
		return o, err
	}
	host, err := hostHeader(r)
	if err != nil {
		return o, err
	}
	o.pool = &smallRequests
	if o.body != nil {
		o.pool = &largeRequests
	}
	o.first = o.pool.Get().(*[]byte)
	b, err := appendHead(*o.first, r, host, last || r.Close)
	if err != nil {
		return o, err
	}
	if o.body != nil {
		o.rest = r.ContentLength
		if room := int64(cap(b) - len(b)); room > 0 {
			n := len(b)
			b = b[:n+int(min(room, o.rest))]
			got, err := io.ReadFull(o.body, b[n:])
			if err != nil {
				return o, &RequestError{"the body cannot be read to the length it has"}
			}
			o.rest -= int64(got)
		}
		if o.rest == 0 {
			if n, _ := o.body.Read(make([]byte, 1)); n > 0 {
				return o, &RequestError{"the body is longer than its length"}
			}
			o.closeBody()
		}
	}
	*o.first = b
	return o, nil
}

func check(r *http.Request, body bool) error {
	switch {
	case r.URL == nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return &RequestError{"not an http or https URL"}
	case r.URL.Opaque != "":
		return &RequestError{"the URL is opaque"}
	case r.Method == http.MethodConnect || r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method):
		return &RequestError{"method"}
	case body && r.ContentLength <= 0:
		return &RequestError{"the body has no length"}
	case !body && r.ContentLength != 0:
		return &RequestError{"the length has no body"}
	case len(r.TransferEncoding) > 0 || len(r.Trailer) > 0:
		return &RequestError{"transfer encodings and trailers are not sent"}
	}
	return nil
}

func hostHeader(r *http.Request) (string, error) {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	host, err := httpguts.PunycodeHostPort(host)
	if err != nil || host == "" || !httpguts.ValidHostHeader(host) {
		return "", &RequestError{"not a host name"}
	}
	// RFC 6874: a zone is for this machine only.
	if strings.HasPrefix(host, "[") {
		if end := strings.LastIndexByte(host, ']'); end > 0 {
			if zone := strings.LastIndexByte(host[:end], '%'); zone > 0 {
				host = host[:zone] + host[end:]
			}
		}
	}
	return host, nil
}

// appendHead writes the request line and the headers in net/http's order: Host, User-Agent, lengths, the rest by name.
func appendHead(b []byte, r *http.Request, host string, last bool) ([]byte, error) {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	b = append(append(b, method...), ' ')
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	if path[0] != '/' || !validTarget(path) || !validTarget(r.URL.RawQuery) {
		return b, &RequestError{"request target"}
	}
	b = append(b, path...)
	if r.URL.ForceQuery || r.URL.RawQuery != "" {
		b = append(append(b, '?'), r.URL.RawQuery...)
	}
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), host...), "\r\n"...)

	var array [32]string
	names := array[:0]
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return b, &RequestError{"header name"}
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				// The value may be a secret.
				return b, &RequestError{"value of header " + name}
			}
		}
		switch headerRule(name) {
		case theirs:
			return b, &RequestError{"header " + name + " belongs to the connection"}
		case ours:
			switch name {
			case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
				continue // left out, as net/http does
			}
			return b, &RequestError{"header " + name + " is not spelled as it should be"}
		}
		if name != "User-Agent" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if agent := r.Header["User-Agent"]; len(agent) > 0 && textproto.TrimString(agent[0]) != "" {
		b = appendField(b, "User-Agent", agent[0])
	}
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	if r.ContentLength > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), r.ContentLength, 10), "\r\n"...)
	}
	for _, name := range names {
		for _, v := range r.Header[name] {
			b = appendField(b, name, v)
		}
	}
	return append(b, "\r\n"...), nil
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, textproto.TrimString(value)...), "\r\n"...)
}

type headerOwner uint8

const (
	callers headerOwner = iota
	ours                // said by this package
	theirs              // would change what the connection is or how it is read
)

// headerRule says whose a header is, however it is spelled.
func headerRule(name string) headerOwner {
	switch len(name) {
	case len("Host"):
		if strings.EqualFold(name, "Host") {
			return ours
		}
	case len("Content-Length"):
		if strings.EqualFold(name, "Content-Length") {
			return ours
		}
	case len("Transfer-Encoding"):
		if strings.EqualFold(name, "Transfer-Encoding") {
			return ours
		}
	case len("TE"):
		if strings.EqualFold(name, "TE") {
			return theirs
		}
	case len("Expect"):
		if strings.EqualFold(name, "Expect") {
			return theirs
		}
	case len("Trailer"):
		if strings.EqualFold(name, "Trailer") {
			return ours
		}
		if strings.EqualFold(name, "Upgrade") {
			return theirs
		}
	case len("Connection"):
		if strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive") {
			return theirs
		}
	case len("Proxy-Connection"):
		if strings.EqualFold(name, "Proxy-Connection") {
			return theirs
		}
	}
	return callers
}

// validTarget: no control characters and no blanks, which would end the target (RFC 9112, 3).
func validTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
