package http1

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/net/http/httpguts"
)

// What an answer's headers may hold; their bytes are bounded by [Options.MaxResponseHeader].
const (
	maxFields  = 256
	maxInterim = 256
)

// field is where one header field is, counted from the beginning of the head.
type field struct{ name, colon, value, end int32 }

// head is one answer's status line and fields, before they are made strings.
type head struct {
	status int
	minor  byte
	reason int // where the status text ends
	size   int // bytes in all
	fields []field
}

var heads = sync.Pool{New: func() any { return &head{fields: make([]field, 0, 32)} }}

// read reads heads from c until a final one; interim ones (1xx) are skipped. It returns the head's text and leaves the
// connection's buffer at the body's first byte. limit bounds all heads together, in bytes.
func (h *head) read(c *conn, limit int) (string, error) {
	c.takeBuffer()
	for range maxInterim + 1 {
		if err := h.scan(c, limit); err != nil {
			return "", err
		}
		if h.status == http.StatusSwitchingProtocols {
			return "", errSwitch
		}
		text := string(c.buf[c.r : c.r+h.size])
		c.r += h.size
		if limit -= h.size; h.status >= 200 {
			return text, nil
		}
		// An interim answer has no body; one that says it had is not passed over.
		if _, _, _, err := h.frame(h.header(text, nil), false); err != nil {
			return "", err
		}
	}
	return "", errInterim
}

// scan finds and checks one head. Each line is judged when it is complete: what is no answer is not waited for.
func (h *head) scan(c *conn, limit int) error {
	*h = head{fields: h.fields[:0]}
	line, searched := 0, 0
	for {
		b := c.buf[c.r:c.w]
		i := bytes.IndexByte(b[searched:], '\n')
		if i < 0 {
			if searched = len(b); searched >= limit {
				return errTooLarge
			}
			if line == 0 && !bytes.HasPrefix(b, versionPrefix[:min(len(b), len(versionPrefix))]) {
				return errStatusLine
			}
			if err := c.fill(); err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
			continue
		}
		end := searched + i
		if end+1 > limit {
			return errTooLarge
		}
		if end == line || b[end-1] != '\r' {
			return errBareLF
		}
		text := b[line : end-1]
		switch {
		case line == 0:
			if err := h.statusLine(text); err != nil {
				return err
			}
		case len(text) == 0:
			h.size = end + 1
			return nil
		default:
			if err := h.field(text, line); err != nil {
				return err
			}
		}
		line, searched = end+1, end+1
	}
}

var versionPrefix = []byte("HTTP/1.")

// statusLine reads "HTTP/1.1 200 OK"; the text and the blank before it may be missing, as they are with many servers.
func (h *head) statusLine(b []byte) error {
	if len(b) < 12 || !bytes.HasPrefix(b, versionPrefix) || b[7] != '0' && b[7] != '1' || b[8] != ' ' {
		return errStatusLine
	}
	for _, d := range b[9:12] {
		if d < '0' || d > '9' {
			return errStatusLine
		}
		h.status = h.status*10 + int(d-'0')
	}
	if h.status < 100 || len(b) > 12 && b[12] != ' ' {
		return errStatusLine
	}
	for _, r := range b[12:] {
		if !valueByte(r) {
			return errStatusLine
		}
	}
	h.minor, h.reason = b[7]-'0', len(b)
	return nil
}

// field reads one field line that begins at offset at.
func (h *head) field(b []byte, at int) error {
	if b[0] == ' ' || b[0] == '\t' {
		return errFolded
	}
	if len(h.fields) == maxFields {
		return errTooMany
	}
	colon := 0
	for colon < len(b) && tokenByte(b[colon]) {
		colon++
	}
	if colon == 0 || colon == len(b) || b[colon] != ':' {
		return errField
	}
	start, end := colon+1, len(b)
	for start < end && (b[start] == ' ' || b[start] == '\t') {
		start++
	}
	for end > start && (b[end-1] == ' ' || b[end-1] == '\t') {
		end--
	}
	for _, v := range b[start:end] {
		if !valueByte(v) {
			return errField
		}
	}
	h.fields = append(h.fields, field{int32(at), int32(at + colon), int32(at + start), int32(at + end)})
	return nil
}

// header makes the map. All strings are parts of text, all values lie in one array: spare when they fit into it.
func (h *head) header(text string, spare []string) http.Header {
	if len(h.fields) > len(spare) {
		spare = make([]string, len(h.fields))
	}
	out := make(http.Header, len(h.fields))
	for i, f := range h.fields {
		name := textproto.CanonicalMIMEHeaderKey(text[f.name:f.colon])
		if have, ok := out[name]; ok {
			out[name] = append(have, text[f.value:f.end])
			continue
		}
		spare[i] = text[f.value:f.end]
		out[name] = spare[i : i+1 : i+1]
	}
	return out
}

// framing says where an answer's body ends.
type framing uint8

const (
	noBody framing = iota
	byLength
	byChunks
	byClose
)

var chunkedOnly = []string{"chunked"}

// frame decides how the body is framed and whether the connection may serve again after it (RFC 9112, 6.3). It takes
// the fields out of the header that net/http takes out.
func (h *head) frame(header http.Header, isHead bool) (f framing, length int64, keep bool, err error) {
	length, err = contentLength(header)
	if err != nil {
		return noBody, 0, false, err
	}
	encodings, encoded := header["Transfer-Encoding"]
	if encoded {
		switch {
		case h.minor == 0:
			return noBody, 0, false, errEncodingOld
		case length >= 0:
			// Whichever one is believed, somebody on the way may believe the other (H07).
			return noBody, 0, false, errBothLengths
		case len(encodings) != 1 || !strings.EqualFold(encodings[0], "chunked"):
			return noBody, 0, false, errEncoding
		}
		delete(header, "Transfer-Encoding")
		for _, v := range header["Trailer"] {
			for name := range strings.SplitSeq(v, ",") {
				switch textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)) {
				case "Transfer-Encoding", "Content-Length", "Trailer":
					return noBody, 0, false, errTrailerField
				}
			}
		}
		delete(header, "Trailer")
	}
	keep = h.minor == 1
	if tokens := header["Connection"]; tokens != nil && httpguts.HeaderValuesContainsToken(tokens, "close") {
		keep = false
	}
	switch {
	case isHead:
		return noBody, length, keep, nil
	case h.status == http.StatusNoContent:
		// A body that should not be may follow all the same.
		return noBody, 0, keep && !encoded && length <= 0, nil
	case h.status == http.StatusNotModified:
		return noBody, 0, keep && !encoded, nil
	case encoded:
		return byChunks, -1, keep, nil
	case length == 0:
		return noBody, 0, keep, nil
	case length > 0:
		return byLength, length, keep, nil
	}
	return byClose, -1, false, nil
}

// contentLength is -1 when there is none. A length that is repeated is taken once.
func contentLength(header http.Header) (int64, error) {
	values := header["Content-Length"]
	if len(values) == 0 {
		return -1, nil
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return 0, errLength
		}
	}
	n, err := strconv.ParseUint(values[0], 10, 63)
	if err != nil {
		return 0, errLength
	}
	if len(values) > 1 {
		header["Content-Length"] = values[:1:1]
	}
	return int64(n), nil
}

// byteClass says what a byte may be part of.
var byteClass = func() (class [256]byte) {
	for b := range 256 {
		if b == '\t' || b >= ' ' && b != 0x7f {
			class[b] |= 1
		}
		if httpguts.IsTokenRune(rune(b)) {
			class[b] |= 2
		}
	}
	return class
}()

// valueByte: RFC 9110, 5.5, field-content.
func valueByte(b byte) bool { return byteClass[b]&1 != 0 }

// tokenByte: RFC 9110, 5.6.2.
func tokenByte(b byte) bool { return byteClass[b]&2 != 0 }
