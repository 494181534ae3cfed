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

// Bounds of an answer's headers; their bytes are bounded by [Options.MaxResponseHeader].
const (
	maxFields  = 256
	maxInterim = 256
)

// field holds the offsets of one header field, counted from the beginning of the head.
type field struct{ name, colon, value, end int32 }

// head holds one answer's status line and fields, before they become strings.
type head struct {
	status int
	minor  byte
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
		// An interim answer has no body; one that announces a body is refused.
		if _, err := h.frame(h.list(text, nil), false); err != nil {
			return "", err
		}
	}
	return "", errInterim
}

// scan finds and checks one head. Each line is checked as soon as it is complete, so that a bad line ends the
// waiting.
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

// statusLine reads "HTTP/1.1 200 OK". The text and the blank before it may be missing, as with many servers.
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
	if !validValue(b[12:]) {
		return errStatusLine
	}
	h.minor = b[7] - '0'
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
	if !validValue(b[start:end]) {
		return errField
	}
	h.fields = append(h.fields, field{int32(at), int32(at + colon), int32(at + start), int32(at + end)})
	return nil
}

// list makes the fields of the head with this text, in spare when they fit. All strings are parts of text, names are
// in canonical form.
func (h *head) list(text string, spare []Field) []Field {
	out := spare[:0]
	if len(h.fields) > cap(out) {
		out = make([]Field, 0, len(h.fields))
	}
	for _, f := range h.fields {
		out = append(out, Field{textproto.CanonicalMIMEHeaderKey(text[f.name:f.colon]), text[f.value:f.end]})
	}
	return out
}

// framing names the way in which the end of an answer's body is marked.
type framing uint8

const (
	noBody framing = iota
	byLength
	byChunks
	byClose
)

// framed describes the framing of an answer's body.
type framed struct {
	by     framing
	length int64   // -1: unknown
	keep   bool    // the connection may serve again after it
	fields []Field // without those that net/http takes out
}

// delimiters holds the statements of a head about the end of its body.
type delimiters struct {
	length    string // of Content-Length; "": there is none
	encodings int    // how many fields Transfer-Encoding
	coding    string // of the last Transfer-Encoding
	trailers  bool   // trailers are announced
	keep      bool   // the connection may serve again
}

// frame decides how the body is framed and whether the connection may serve again after it (RFC 9112, 6.3). It takes
// ownership of fields.
func (h *head) frame(fields []Field, isHead bool) (framed, error) {
	d, kept, err := h.delimiters(fields)
	if err != nil {
		return framed{}, err
	}
	n, err := d.bytes()
	if err != nil {
		return framed{}, err
	}
	keep, encoded := d.keep, d.encodings > 0
	if encoded {
		if err := h.checkEncoding(d, n); err != nil {
			return framed{}, err
		}
		if d.trailers {
			if kept, err = withoutTrailer(kept); err != nil {
				return framed{}, err
			}
		}
	}
	switch {
	case isHead:
		return framed{noBody, n, keep, kept}, nil
	case h.status == http.StatusNoContent:
		// A forbidden body may follow nevertheless.
		return framed{noBody, 0, keep && !encoded && n <= 0, kept}, nil
	case h.status == http.StatusNotModified:
		return framed{noBody, 0, keep && !encoded, kept}, nil
	case encoded:
		return framed{byChunks, -1, keep, kept}, nil
	case n == 0:
		return framed{noBody, 0, keep, kept}, nil
	case n > 0:
		return framed{byLength, n, keep, kept}, nil
	}
	return framed{byClose, -1, false, kept}, nil
}

// delimiters reads the statements about the end of the body. It returns the fields that are kept, in the same memory.
func (h *head) delimiters(fields []Field) (delimiters, []Field, error) {
	d, kept := delimiters{keep: h.minor == 1}, fields[:0]
	for _, f := range fields {
		switch f.Name {
		case "Content-Length":
			if f.Value == "" || d.length != "" && f.Value != d.length {
				return delimiters{}, nil, errLength
			}
			if d.length != "" {
				continue // a length that is repeated is taken once
			}
			d.length = f.Value
		case "Transfer-Encoding":
			d.encodings++
			d.coding = f.Value
			continue
		case "Trailer":
			d.trailers = true
		case "Connection":
			d.keep = d.keep && !httpguts.HeaderValuesContainsToken([]string{f.Value}, "close")
		}
		kept = append(kept, f)
	}
	return d, kept, nil
}

// bytes returns the length that Content-Length gives, -1 for none.
func (d delimiters) bytes() (int64, error) {
	if d.length == "" {
		return -1, nil
	}
	n, err := strconv.ParseUint(d.length, 10, 63)
	if err != nil {
		return -1, errLength
	}
	return int64(n), nil
}

// checkEncoding checks the transfer encoding of a body, of which Content-Length says that it has n bytes.
func (h *head) checkEncoding(d delimiters, n int64) error {
	switch {
	case h.minor == 0:
		return errEncodingOld
	case n >= 0:
		// Whichever of the two is used, another reader on the way may use the other (H07).
		return errBothLengths
	case d.encodings > 1 || !strings.EqualFold(d.coding, "chunked"):
		return errEncoding
	}
	return nil
}

// withoutTrailer removes the announcements of trailers. They may not announce fields that frame the message.
func withoutTrailer(fields []Field) ([]Field, error) {
	kept := fields[:0]
	for _, f := range fields {
		if f.Name != "Trailer" {
			kept = append(kept, f)
			continue
		}
		for name := range strings.SplitSeq(f.Value, ",") {
			switch textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)) {
			case "Transfer-Encoding", "Content-Length", "Trailer":
				return nil, errTrailerField
			}
		}
	}
	return kept, nil
}

// byteClass says of which elements a byte may be a part.
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

// valueByte reports whether b may be in a field's content (RFC 9110, 5.5, field-content).
func valueByte(b byte) bool { return byteClass[b]&1 != 0 }

// tokenByte reports whether b may be in a token (RFC 9110, 5.6.2).
func tokenByte(b byte) bool { return byteClass[b]&2 != 0 }
