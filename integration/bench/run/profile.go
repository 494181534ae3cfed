package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// profile writes a CPU profile of the gateway under a closed loop of tools/call, and its allocations, to a directory.
// When the requested figure is P8, each call has a token that was not seen before; when it is P7, the calls are to a
// model; when it is P5, there are no calls but open streams with events, or for its second figure, calls that are
// answered as streams.
func (b *bench) profile(ctx context.Context, directory string, wanted []figure, out io.Writer) error {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return err
	}
	stub, err := b.startStub(ctx)
	if err != nil {
		return err
	}
	defer stub.stop()
	gateway, err := b.startGateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.stop()
	seconds := max(1, int(b.seconds*float64(b.rounds)))
	start := b.closedLoop
	switch wanted[0].name() {
	case "P5 call":
		start = b.streamedLoop
	case "P5 event":
		start = b.openStreams(gateway)
	case "P7":
		start = b.chatLoop
	case "P8 seen":
		start = b.unseenLoop
	}
	wait, err := start(ctx, seconds+1, out)
	if err != nil {
		return err
	}
	err = errors.Join(
		b.fetchProfile(ctx, fmt.Sprint("profile?seconds=", seconds), filepath.Join(directory, "cpu.pprof")),
		wait(),
		b.fetchProfile(ctx, "allocs", filepath.Join(directory, "allocs.pprof")),
	)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	_, err = fmt.Fprintf(out, "go tool pprof -top %s %s\n", b.binary, filepath.Join(directory, "cpu.pprof"))
	return err
}

// closedLoop starts the load of P1 and returns a function that waits for its end.
func (b *bench) closedLoop(ctx context.Context, seconds int, out io.Writer) (wait func() error, err error) {
	return b.load(ctx, seconds, out, "/mcp/bench-call", b.tokenFile(), padded(b.body))
}

// streamedLoop starts the load of P5's calls and returns a function that waits for its end.
func (b *bench) streamedLoop(ctx context.Context, seconds int, out io.Writer) (wait func() error, err error) {
	return b.load(ctx, seconds, out, "/mcp/bench-stream", b.tokenFile(), padded(b.body))
}

// openStreams opens the streams of P5 and returns, once all should be open, a function that waits for their end.
func (b *bench) openStreams(gateway *process) func(context.Context, int, io.Writer) (wait func() error, err error) {
	return func(ctx context.Context, seconds int, out io.Writer) (wait func() error, err error) {
		load := exec.CommandContext(ctx, b.program("sseload"), "-name", "durward", "-url", b.url()+"/sse/bench-events-2", "-token", b.tokens[0],
			"-pid", fmt.Sprint(gateway.Process.Pid), "-d", fmt.Sprintf("%ds", seconds+1))
		load.Stdout, load.Stderr = out, os.Stderr
		if err := load.Start(); err != nil {
			return nil, err
		}
		time.Sleep(3 * time.Second)
		return load.Wait, nil
	}
}

// chatLoop starts the load of P7 and returns a function that waits for its end.
func (b *bench) chatLoop(ctx context.Context, seconds int, out io.Writer) (wait func() error, err error) {
	return b.load(ctx, seconds, out, chatPath, b.keyFile(), chat)
}

func (b *bench) load(ctx context.Context, seconds int, out io.Writer, path, bearers, body string) (wait func() error, err error) {
	load := exec.CommandContext(ctx, b.program("load"), "-name", "durward", "-url", b.url()+path, "-tokens", bearers,
		"-body", body, "-warm", "1s", "-d", fmt.Sprintf("%ds", seconds))
	load.Stdout, load.Stderr = out, os.Stderr
	return load.Wait, load.Start()
}

// padded returns the call with a longer argument, of that many bytes in all. A size below the call's own returns it
// unchanged.
func padded(size int) string {
	return strings.Replace(call, `"title":"`, `"title":"`+strings.Repeat("x", max(0, size-len(call))), 1)
}

// unseenLoop starts the load of P8 and returns a function that waits for its end.
func (b *bench) unseenLoop(ctx context.Context, seconds int, _ io.Writer) (wait func() error, err error) {
	w, err := dial(b.address)
	if err != nil {
		return nil, err
	}
	requests := make([][]byte, 6000*seconds)
	for n := range requests {
		token, err := b.issuer.token(user(n%users), b.url())
		if err != nil {
			return nil, err
		}
		requests[n] = request(b.address, "/mcp/bench-call", token)
	}
	ended := make(chan error, 1)
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	go func() {
		defer w.connection.Close()
		for _, r := range requests {
			if err := w.exchange(r); err != nil || time.Now().After(until) {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	return func() error { return <-ended }, nil
}

// fetchProfile stores the answer of the admin endpoint for a profile.
func (b *bench) fetchProfile(ctx context.Context, name, path string) error {
	content, err := b.fetchAdmin(ctx, "/debug/pprof/"+name)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// fetchAdmin asks the admin endpoint.
func (b *bench) fetchAdmin(ctx context.Context, path string) ([]byte, error) {
	client := &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", b.adminSocket())
		},
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1"+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	return io.ReadAll(response.Body)
}
