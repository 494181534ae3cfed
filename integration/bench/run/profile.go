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
	"time"
)

// profile writes a CPU profile of the gateway under a closed loop of tools/call, and what it allocated, to a directory.
func (b *bench) profile(ctx context.Context, directory string, out io.Writer) error {
	if err := os.MkdirAll(directory, 0o750); err != nil {
		return err
	}
	for _, start := range []func(context.Context) (*process, error){b.startStub, b.startGateway} {
		p, err := start(ctx)
		if err != nil {
			return err
		}
		defer p.stop()
	}
	seconds := max(1, int(b.seconds*float64(b.rounds)))
	load := exec.CommandContext(ctx, b.program("load"), "-name", "durward", "-url", gatewayURL+"/mcp/bench-call", "-tokens", b.tokenFile(),
		"-body", call, "-warm", "1s", "-d", fmt.Sprintf("%ds", seconds+1))
	load.Stdout, load.Stderr = out, os.Stderr
	if err := load.Start(); err != nil {
		return err
	}
	err := errors.Join(
		b.fetchProfile(ctx, fmt.Sprint("profile?seconds=", seconds), filepath.Join(directory, "cpu.pprof")),
		load.Wait(),
		b.fetchProfile(ctx, "allocs", filepath.Join(directory, "allocs.pprof")),
	)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	_, err = fmt.Fprintf(out, "go tool pprof -top %s %s\n", b.program("durward"), filepath.Join(directory, "cpu.pprof"))
	return err
}

// fetchProfile stores what the admin endpoint answers for a profile.
func (b *bench) fetchProfile(ctx context.Context, name, path string) error {
	client := &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", b.adminSocket())
		},
	}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/debug/pprof/"+name, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Body)
	return errors.Join(err, file.Close())
}
