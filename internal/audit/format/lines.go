package format

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line of a segment. A checkpoint of 10,000 organizations takes 1.5 MB.
const maxLine = 64 << 20

// Lines reads complete lines. It stops at the end of the file or at the first NUL byte: a former version allocated zeros
// ahead of the lines, and a power cut may leave zeros.
type Lines struct {
	reader *bufio.Reader
	Offset int64 // the end of the last complete line
	buffer []byte
}

// NewLines returns a reader of the lines in r.
func NewLines(r io.Reader) *Lines { return &Lines{reader: bufio.NewReaderSize(r, 64<<10)} }

// Next returns the next line without its line end. The line is valid until the next call. It returns io.EOF when there is
// no further complete line.
func (l *Lines) Next() ([]byte, error) {
	l.buffer = l.buffer[:0]
	for {
		part, err := l.reader.ReadSlice('\n')
		written := bytes.IndexByte(part, 0) < 0
		if err == nil && written && len(l.buffer) == 0 {
			l.Offset += int64(len(part))
			return part[:len(part)-1], nil
		}
		l.buffer = append(l.buffer, part...)
		switch {
		case !written:
			return nil, io.EOF
		case err == nil:
			l.Offset += int64(len(l.buffer))
			return l.buffer[:len(l.buffer)-1], nil
		case errors.Is(err, bufio.ErrBufferFull) && len(l.buffer) < maxLine:
			continue
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("%w: longer than %d bytes", ErrMalformed, maxLine)
		default:
			return nil, err
		}
	}
}

// Torn returns the number of bytes after the last complete line, without the zeros at the end. It must be called after
// io.EOF.
func (l *Lines) Torn() (int64, error) {
	torn, at := int64(0), int64(0)
	for part, buffer := l.buffer, make([]byte, 64<<10); ; {
		if used := len(trimZeros(part)); used > 0 {
			torn = at + int64(used)
		}
		at += int64(len(part))
		n, err := l.reader.Read(buffer)
		if part = buffer[:n]; err != nil && n == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return torn, err
		}
	}
}

const pageSize = 4096

var zeroPage [pageSize]byte

// trimZeros returns b without the zeros at its end. It compares a page at a time; bytes.TrimRight compares single bytes.
func trimZeros(b []byte) []byte {
	for len(b) >= pageSize && bytes.Equal(b[len(b)-pageSize:], zeroPage[:]) {
		b = b[:len(b)-pageSize]
	}
	return bytes.TrimRight(b, "\x00")
}
