package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// installed holds a function for each name for which Tools was called.
var installed sync.Map

// Tools returns the directory into which the script integration/install installs the tools of a name. `make test` has
// it installed before; otherwise the first test that asks waits for it.
func Tools(t testing.TB, name string) string {
	t.Helper()
	once, _ := installed.LoadOrStore(name, sync.OnceValues(func() (string, error) { return install(name) }))
	directory, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return directory
}

func install(name string) (string, error) {
	script, err := findAbove("integration/install")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), InstallTimeout)
	defer cancel()
	var complaint bytes.Buffer
	command := exec.CommandContext(ctx, script, name)
	command.Stderr = &complaint
	command.WaitDelay = StopTimeout
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("installing %s: %w\n%s", name, err, Tail(complaint.String(), 5_000))
	}
	return strings.TrimSpace(string(output)), nil
}

// findAbove finds a file by its path from the root of the checkout, which the package's folder is below.
func findAbove(path string) (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		found := filepath.Join(folder, path)
		if _, err := os.Stat(found); err == nil {
			return found, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", errors.New("there is no " + path + " above the working directory")
		}
		folder = above
	}
}
