package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// buildTags holds the tags of the Makefile: with the same flags, nothing is compiled twice.
const buildTags = "nobadger,nomysql,nopgx"

// raceDetector holds the options that put the gateways under the race detector. They take three times as long then:
// `make race` asks for it.
var raceDetector = strings.Fields(os.Getenv("DURWARD_TEST_RACE"))

// RaceDetector reports whether the gateways run under the race detector.
var RaceDetector = len(raceDetector) > 0

// builtIn is the directory of the binary once it is built.
var builtIn string

// buildBinary compiles cmd/durward, once in a run of the tests.
var buildBinary = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "durward-integration-")
	if err != nil {
		return "", err
	}
	builtIn = directory
	binary := filepath.Join(directory, "durward")
	arguments := []string{"build", "-trimpath", "-tags=" + buildTags, "-o", binary}
	cgo := "CGO_ENABLED=0"
	if RaceDetector {
		arguments, cgo = append(arguments, raceDetector...), "CGO_ENABLED=1"
	}
	build := exec.Command("go", append(arguments, "github.com/durward-gateway/durward/cmd/durward")...)
	build.Env = append(os.Environ(), cgo)
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w\n%s", err, output)
	}
	return binary, nil
})

// Durward returns the path of the built binary.
func Durward(t testing.TB) string {
	t.Helper()
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
