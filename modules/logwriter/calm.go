package logwriter

import (
	"bytes"
	"io"
)

// harmless are warnings of Caddy's about what a gateway's configuration means to be so. Each has a piece of text that must be in the
// line too, when the warning is a real one elsewhere.
var harmless = []struct{ message, piece string }{
	{"HTTP/2 skipped because it requires TLS", ""},
	{"HTTP/3 skipped because it requires TLS", ""},
	{"server is listening only on the HTTP port, so no automatic HTTPS will be applied to this server", ""},
	{"admin endpoint disabled", ""},
	{"admin endpoint on open interface; host checking disabled", `"unix/`}, // the file's mode guards a socket
	{"exiting; byeee!! 👋", ""},
	{"Caddyfile input is not formatted; run 'caddy fmt --overwrite' to fix inconsistencies", ""},
}

// levelAt is how far into a line its level may begin.
const levelAt = 50

// calm makes an INFO of a line that is a harmless warning, in JSON or in the console's format.
func calm(line []byte) []byte {
	beginning := line[:min(len(line), levelAt)]
	before, after, open, closing := []byte("WARN"), []byte("INFO"), "\t", "\t\n"
	if bytes.HasPrefix(line, []byte("{")) {
		before, after, open, closing = []byte(`"level":"warn"`), []byte(`"level":"info"`), `"msg":"`, `"`
	}
	at := bytes.Index(beginning, before)
	if at < 0 {
		return line
	}
	for _, h := range harmless {
		_, rest, found := bytes.Cut(line, []byte(open+h.message))
		if found && len(rest) > 0 && bytes.IndexByte([]byte(closing), rest[0]) >= 0 && bytes.Contains(rest, []byte(h.piece)) {
			return bytes.Replace(line, before, after, 1)
		}
	}
	return line
}

// calmed writes to a log without harmless warnings.
type calmed struct{ io.WriteCloser }

// Write writes a line, which zap writes at once.
func (w calmed) Write(line []byte) (int, error) {
	if _, err := w.WriteCloser.Write(calm(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
