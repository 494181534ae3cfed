package logwriter

import (
	"bytes"
	"io"
)

// harmless lists warnings of Caddy about settings that a gateway's configuration makes on purpose. A warning that can
// be a real one elsewhere has a piece of text that must be in the line too.
var harmless = []struct{ message, piece string }{
	{"HTTP/2 skipped because it requires TLS", ""},
	{"HTTP/3 skipped because it requires TLS", ""},
	{"server is listening only on the HTTP port, so no automatic HTTPS will be applied to this server", ""},
	{"admin endpoint disabled", ""},
	{"admin endpoint on open interface; host checking disabled", `"unix/`}, // the file's mode protects a socket
	{"exiting; byeee!! 👋", ""},
	{"Caddyfile input is not formatted; run 'caddy fmt --overwrite' to fix inconsistencies", ""},
}

// levelAt is the greatest offset in a line at which its level may begin.
const levelAt = 50

// calm turns a line that is a harmless warning, in JSON or in the console's format, into an INFO.
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

// calmed writes to a log and turns harmless warnings into INFO lines.
type calmed struct{ io.WriteCloser }

// Write writes a line, which zap writes at once.
func (w calmed) Write(line []byte) (int, error) {
	if _, err := w.WriteCloser.Write(calm(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
