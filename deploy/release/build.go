package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// platform names an operating system and a processor as Go does.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "arm64"}}

// binary is the gateway, built for a platform.
type binary struct {
	platform
	content []byte
}

// tags are those of the Makefile's binary for production.
const tags = "nobadger,nomysql,nopgx,nodev"

// build compiles the gateway into a file. Nothing that could change the bytes is taken from who runs it, and none of it is
// the folder or the state of the checkout: the list of components names the commit.
func (r release) build(ctx context.Context, p platform, file string) (binary, error) {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-tags="+tags, //nolint:gosec // the version has a form
		"-ldflags=-s -w -X main.version="+r.version, "-o", file, "./cmd/durward")
	command.Env = append(slices.DeleteFunc(os.Environ(), isBuildSetting), "GOOS="+p.os, "GOARCH="+p.arch,
		"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off")
	if _, err := r.output(command); err != nil {
		return binary{}, err
	}
	content, err := os.ReadFile(file)
	return binary{p, content}, err
}

func isBuildSetting(variable string) bool {
	for _, name := range []string{"GOOS=", "GOARCH=", "CGO_", "GOFLAGS=", "GOWORK=", "GOEXPERIMENT=", "GOAMD64=", "GOARM64=", "GOFIPS140="} {
		if strings.HasPrefix(variable, name) {
			return true
		}
	}
	return false
}

// host returns a path of a binary that runs here.
func (r release) host(ctx context.Context, built []platform, work string) (string, error) {
	here := platform{runtime.GOOS, runtime.GOARCH}
	file := filepath.Join(work, here.String(), "durward")
	if slices.Contains(built, here) {
		return file, nil
	}
	_, err := r.build(ctx, here, file)
	return file, err
}

// git returns the output of a command of git in the checkout.
func (r release) git(ctx context.Context, arguments ...string) (string, error) {
	output, err := r.output(exec.CommandContext(ctx, "git", arguments...)) //nolint:gosec // they are written out above
	return strings.TrimSpace(string(output)), err
}

// output runs a command in the checkout, and returns what it prints. An error has what it says about it.
func (r release) output(command *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	command.Dir, command.Stderr = r.root, &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(command.Path), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return output, nil
}
