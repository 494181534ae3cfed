package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// Writer writes events, each as one piece that should arrive at once. It is not safe for concurrent use.
type Writer struct {
	send func(frame []byte) error
	buf  []byte
}

// NewWriter writes to w and calls flush after each event; flush may be nil. http.ResponseController's Flush fits.
func NewWriter(w io.Writer, flush func() error) *Writer {
	return NewSender(func(frame []byte) error {
		if _, err := w.Write(frame); err != nil || flush == nil {
			return err
		}
		return flush()
	})
}

// NewSender returns a Writer that passes each event to send.
func NewSender(send func(frame []byte) error) *Writer { return &Writer{send: send} }

// Event writes one event. An empty name is left out. Data may have any line ends; each of its lines becomes a data line,
// so that nothing in it can end the event or start another field.
func (w *Writer) Event(name string, data []byte) error {
	frame, err := AppendEvent(w.buf[:0], name, data)
	if err != nil {
		return err
	}
	return w.own(frame)
}

// Heartbeat writes an empty comment.
func (w *Writer) Heartbeat() error { return w.own(append(w.buf[:0], ":\n\n"...)) }

// Raw writes bytes that already are whole events, such as an [Event]'s Raw.
func (w *Writer) Raw(frame []byte) error { return w.send(frame) }

func (w *Writer) own(frame []byte) error {
	// A stream waits far longer than it writes: so a large frame is not kept.
	if w.buf = frame[:0]; cap(frame) > keptBuffer {
		w.buf = nil
	}
	return w.Raw(frame)
}

// AppendEvent appends one event to dst. It fails on a name with CR, LF or NUL, which could start another field.
func AppendEvent(dst []byte, name string, data []byte) ([]byte, error) {
	if strings.ContainsAny(name, "\r\n\x00") {
		return nil, errors.New("writing an event: its name has a line end or NUL")
	}
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for {
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			return append(append(append(dst, "data: "...), data...), "\n\n"...), nil
		}
		dst = append(append(append(dst, "data: "...), data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}
