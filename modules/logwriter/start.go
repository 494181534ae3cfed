package logwriter

import (
	"bytes"
	"io"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

func init() { caddy.RegisterModule(StartWriter{}) }

// quiet reports whether a command is starting that itself tells people about its start.
var quiet atomic.Bool

// Quiet leaves lines below an error out of the logs that a StartWriter writes, until it is called with false.
func Quiet(on bool) { quiet.Store(on) }

// StartWriter writes a log to standard error. While `durward dev` starts it leaves out lines below the level error, so
// that newcomers see its one screen without log lines before it.
type StartWriter struct{ caddy.StderrWriter }

// CaddyModule returns the Caddy module information.
func (StartWriter) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: namespace + "durward_start", New: func() caddy.Module { return new(StartWriter) }}
}

// OpenWriter opens standard error.
func (w StartWriter) OpenWriter() (io.WriteCloser, error) {
	out, err := w.StderrWriter.OpenWriter()
	return &startWriter{calmed{out}}, err
}

type startWriter struct{ io.WriteCloser }

// Write writes a line, which zap writes at once.
func (w *startWriter) Write(line []byte) (int, error) {
	if quiet.Load() && !isError(line) {
		return len(line), nil
	}
	return w.WriteCloser.Write(line)
}

// isError reports whether a line of JSON or of the console's format is an error or worse. Both begin with the level; a
// line in neither format is written.
func isError(line []byte) bool {
	lower, beginning := []string{"DEBUG", "INFO", "WARN"}, line[:min(len(line), levelAt)]
	if bytes.HasPrefix(line, []byte("{")) {
		lower = []string{`"level":"debug"`, `"level":"info"`, `"level":"warn"`}
	}
	return !slices.ContainsFunc(lower, func(level string) bool { return bytes.Contains(beginning, []byte(level)) })
}

// UnmarshalCaddyfile reads the text behind `output`: the name alone.
func (*StartWriter) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	return noMore(d)
}

var (
	_ caddy.WriterOpener    = (*StartWriter)(nil)
	_ caddyfile.Unmarshaler = (*StartWriter)(nil)
)
