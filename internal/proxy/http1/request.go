package http1

import (
	"cmp"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// Field is one header field. Requests and answers have a list of fields in place of a map: callers look for a few
// names only, and a list costs one allocation or none.
type Field struct{ Name, Value string }

// Request is a request for [Client.Send].
type Request struct {
	Method string   // "": GET
	URL    *url.URL // http or https. Only its host, path and query are sent
	// Fields holds the headers, in any order. A header with several values is listed once per value. Send puts them
	// in order. This package itself sets the headers that frame the message or belong to the connection: see
	// [Client.Send].
	Fields []Field
	Body   []byte // must not be changed until the answer's body is closed
}

// Get returns the first value of the field of exactly that name; "" when there is none.
func (r *Request) Get(name string) string {
	for i := range r.Fields {
		if r.Fields[i].Name == name {
			return r.Fields[i].Value
		}
	}
	return ""
}

// Set puts a field on the request, in place of all of that name under any spelling.
func (r *Request) Set(name, value string) {
	kept := r.Fields[:0]
	for _, f := range r.Fields {
		if len(f.Name) != len(name) || !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	r.Fields = append(kept, Field{name, value})
}

// Sizes of the buffers in which requests are built. A request without a body has only headers.
const (
	smallRequest = 4 << 10
	largeRequest = 16 << 10 // the most that leaves in one write, body included
)

var (
	smallRequests = sync.Pool{New: func() any { b := make([]byte, 0, smallRequest); return &b }}
	largeRequests = sync.Pool{New: func() any { b := make([]byte, 0, largeRequest); return &b }}
)

// outgoing holds a checked request: its first write, and the rest of its body.
type outgoing struct {
	first *[]byte // head, and as much of the body as fits; nil when it was released
	pool  *sync.Pool
	rest  []byte
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

// prepare checks r and writes it into a buffer. Every part of the request is checked before the first byte leaves: no
// value can end a line (H08).
func prepare(r *Request, last bool) (o outgoing, err error) {
	if err := check(r); err != nil {
		return o, err
	}
	host, err := hostHeader(r.URL.Host)
	if err != nil {
		return o, err
	}
	o.pool = &smallRequests
	if len(r.Body) > 0 {
		o.pool = &largeRequests
	}
	o.first = o.pool.Get().(*[]byte)
	b, err := appendHead(*o.first, r, host, last)
	if err != nil {
		o.release()
		return o, err
	}
	n := min(len(r.Body), cap(b)-len(b))
	*o.first, o.rest = append(b, r.Body[:n]...), r.Body[n:]
	return o, nil
}

func check(r *Request) error {
	switch {
	case r.URL == nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return &RequestError{"not an http or https URL"}
	case r.URL.Opaque != "":
		return &RequestError{"the URL is opaque"}
	case r.Method == http.MethodConnect || r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method):
		return &RequestError{"method"}
	}
	return nil
}

func hostHeader(host string) (string, error) {
	host, err := httpguts.PunycodeHostPort(host)
	if err != nil || host == "" || !httpguts.ValidHostHeader(host) {
		return "", &RequestError{"not a host name"}
	}
	// RFC 6874: a zone has a meaning only on this machine.
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
func appendHead(b []byte, r *Request, host string, last bool) ([]byte, error) {
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
	if err := checkFields(r); err != nil {
		return b, err
	}
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Name == "User-Agent" {
			if textproto.TrimString(f.Value) != "" {
				b = appendField(b, f)
			}
			break
		}
	}
	if last {
		b = append(b, "Connection: close\r\n"...)
	}
	if len(r.Body) > 0 || method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(r.Body)), 10), "\r\n"...)
	}
	for i := range r.Fields {
		if f := &r.Fields[i]; f.Name != "User-Agent" {
			b = appendField(b, f)
		}
	}
	return append(b, "\r\n"...), nil
}

// checkFields removes the fields that this package sets itself, refuses forbidden ones, and sorts the rest.
func checkFields(r *Request) error {
	kept := r.Fields[:0]
	for _, f := range r.Fields {
		if !validName(f.Name) {
			return &RequestError{"header name"}
		}
		if !ValidFieldValue(f.Value) {
			// The value may be a secret.
			return &RequestError{"value of header " + f.Name}
		}
		switch headerRule(f.Name) {
		case theirs:
			return &RequestError{"header " + f.Name + " belongs to the connection"}
		case ours:
			switch f.Name {
			case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
				continue // left out, as net/http does
			}
			return &RequestError{"header " + f.Name + " is not spelled as it should be"}
		}
		kept = append(kept, f)
	}
	order(kept)
	r.Fields = kept
	return nil
}

// order sorts by name and leaves the values of one name in their order. Clients send so few fields that insertion
// sort suffices.
func order(fields []Field) {
	if len(fields) > 24 {
		slices.SortStableFunc(fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
		return
	}
	for i := 1; i < len(fields); i++ {
		f, at := fields[i], i
		for ; at > 0 && f.Name < fields[at-1].Name; at-- {
			fields[at] = fields[at-1]
		}
		fields[at] = f
	}
}

func appendField(b []byte, f *Field) []byte {
	b = append(append(b, f.Name...), ": "...)
	return append(append(b, textproto.TrimString(f.Value)...), "\r\n"...)
}

type headerOwner uint8

const (
	callers headerOwner = iota
	ours                // set by this package
	theirs              // would change the connection or how it is read
)

// headerRule returns the owner of a header, however it is spelled.
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

func validName(s string) bool {
	for i := range len(s) {
		if !tokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// ValidFieldValue reports whether a header field's value holds nothing that ends a line, and no other control
// character (RFC 9110, 5.5).
func ValidFieldValue(s string) bool { return validValue(s) }

func validValue[T string | []byte](s T) bool {
	// This tests eight bytes at once: a byte below a blank, or a DEL, leaves its highest bit in one of the two
	// results. A bit beside the first such byte may be wrong, and a tab sets it too.
	const ones, highest = 0x0101010101010101, 0x8080808080808080
	for len(s) >= 8 {
		x := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		del := x ^ 0x7f*ones
		if ((x-' '*ones)&^x|(del-ones)&^del)&highest != 0 {
			break
		}
		s = s[8:]
	}
	for i := range len(s) {
		if !valueByte(s[i]) {
			return false
		}
	}
	return true
}

// validTarget reports whether a request target holds no control characters and no blanks, which would end it (RFC
// 9112, 3).
func validTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
