// Package logwriter is the log writer durward: it puts a bounded buffer before another of Caddy's log writers, so that
// requests go on when nobody reads the log (Caddy writes logs while it answers).
package logwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/logging"

	"github.com/durward-gateway/durward/internal/ops/access"
	"github.com/durward-gateway/durward/internal/ops/logbuffer"
	"github.com/durward-gateway/durward/modules/app/process"
)

func init() {
	caddy.RegisterModule(Writer{})
	caddy.OnExit(finish)
}

// opened holds the buffers of this process by WriterKey. Caddy keeps writers once they are open, and does not close
// them.
var opened sync.Map

// finish empties the buffers before the process ends. The lines that Caddy writes after that are not buffered.
func finish(context.Context) {
	var writers sync.WaitGroup
	for _, w := range opened.Range {
		writers.Go(w.(*logbuffer.Writer).Finish)
	}
	writers.Wait()
}

// serving caches whether a configuration serves: every line asks for it.
var serving atomic.Bool

// maybeLast reports whether a line may be the last of this process. That is so while no configuration serves. The line
// that says why a start has failed is an example: Caddy writes it after its Cleanup and exits without OnExit.
func maybeLast() bool {
	if serving.Load() || caddy.Exiting() { // finish empties the buffer
		return false
	}
	serves := caddy.ActiveContext().Context != nil
	serving.Store(serves)
	return !serves
}

// Writer passes a log's lines on to another writer without ever blocking the caller while a configuration serves. Up to
// 4 MiB of lines wait; more are dropped, counted (`durward_log_lines_dropped_total`), and the log reports where and how
// many. Lines that wait outlive a reload of the configuration; at the exit they have two seconds to be written.
type Writer struct {
	// The log writer that the lines go to. Default: stderr.
	WriterRaw json.RawMessage `json:"writer,omitempty" caddy:"namespace=caddy.logging.writers inline_key=output"`

	opener caddy.WriterOpener
}

// namespace is the namespace of Caddy's log writers.
const namespace = "caddy.logging.writers."

// CaddyModule returns the Caddy module information.
func (Writer) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: namespace + "durward", New: func() caddy.Module { return new(Writer) }}
}

// Provision loads the writer behind the buffer.
func (w *Writer) Provision(ctx caddy.Context) error {
	w.opener = caddy.StderrWriter{}
	if w.WriterRaw != nil {
		module, err := ctx.LoadModule(w, "WriterRaw")
		if err != nil {
			return fmt.Errorf("loading the writer: %w", err)
		}
		opener, ok := module.(caddy.WriterOpener)
		if !ok {
			return fmt.Errorf("%T is no log writer", module)
		}
		w.opener = opener
	}
	return registerMetrics(ctx.GetMetricsRegistry())
}

// String returns the target of the lines, for people.
func (w *Writer) String() string { return w.opener.String() }

// GoString returns the text that Caddy puts into the error of a writer that cannot be opened.
func (w *Writer) GoString() string { return w.String() }

// WriterKey returns the key of the writer behind the buffer with a prefix of the gateway's own. Configurations with the
// same key share the writer that OpenWriter returned, one after the other.
func (w *Writer) WriterKey() string { return "durward:" + w.opener.WriterKey() }

// OpenWriter opens the writer behind the buffer. In a trial it opens nothing; for a file it returns the error that
// opening would give.
func (w *Writer) OpenWriter() (io.WriteCloser, error) {
	if _, trying := process.Trial(); trying {
		return discarded{}, w.try()
	}
	out, err := w.opener.OpenWriter()
	if err != nil {
		return nil, err
	}
	buffer := logbuffer.New(out, countDropped, maybeLast, nil)
	opened.Store(w.WriterKey(), buffer)
	return calmed{buffer}, nil
}

// try returns the reason why the file behind the buffer could not be made. Caddy makes all of its directories.
func (w *Writer) try() error {
	file, ok := w.opener.(*logging.FileWriter)
	if !ok {
		return nil
	}
	directory := filepath.Dir(file.Filename)
	switch info, err := os.Stat(directory); {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: directory, Err: syscall.ENOTDIR}
	case !errors.Is(err, fs.ErrNotExist):
		return access.Make(file.Filename)
	}
	for parent := filepath.Dir(directory); parent != directory; parent = filepath.Dir(directory) {
		if _, err := os.Stat(parent); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		directory = parent
	}
	return access.MakeIn(directory)
}

// discarded is the log writer of a trial.
type discarded struct{}

func (discarded) Write(line []byte) (int, error) { return len(line), nil }
func (discarded) Close() error                   { return nil }

// Cleanup writes the waiting lines of a configuration that ends, or that was only validated: a process may end without
// OnExit.
func (w *Writer) Cleanup() error {
	if w.opener == nil || caddy.Exiting() {
		return nil
	}
	serving.Store(false) // perhaps no configuration is left
	if buffer, ok := opened.Load(w.WriterKey()); ok {
		buffer.(*logbuffer.Writer).Flush()
	}
	return nil
}

// UnmarshalCaddyfile reads the text behind `output`:
//
//	durward [<writer> [<arguments...>] {
//		...
//	}]
func (w *Writer) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.NextArg() {
		return noMore(d)
	}
	name := d.Val()
	var opener any
	switch name {
	case "stderr":
		opener = caddy.StderrWriter{}
	case "stdout":
		opener = caddy.StdoutWriter{}
	default: // those of Caddy's core read no Caddyfile
		var err error
		if opener, err = caddyfile.UnmarshalModule(d, namespace+name); err != nil {
			return err
		}
		if _, ok := opener.(caddy.WriterOpener); !ok {
			return d.Errf("%s is no log writer", name)
		}
	}
	w.WriterRaw = caddyconfig.JSONModuleObject(opener, "output", name, nil)
	return noMore(d)
}

// noMore refuses arguments and blocks that no writer has read.
func noMore(d *caddyfile.Dispenser) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		return d.Errf("unknown word %q", d.Val())
	}
	return nil
}

var (
	_ caddy.Provisioner     = (*Writer)(nil)
	_ caddy.CleanerUpper    = (*Writer)(nil)
	_ caddy.WriterOpener    = (*Writer)(nil)
	_ caddyfile.Unmarshaler = (*Writer)(nil)
)
