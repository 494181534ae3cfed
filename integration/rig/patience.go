package rig

import (
	"os"
	"testing"
	"time"
)

// room is the factor by which tests wait longer for other programs than these take on a machine at rest. One with a
// third of its speed, on which other tests run, takes ten times as long.
const room = 100

// These are the bounds of waiting. They end tests that hang, and are no measure of speed: Within has the bounds of
// speed.
const (
	// StartTimeout is the longest time for a process from its start until it serves, which takes two seconds.
	StartTimeout = 2 * room * time.Second
	// StopTimeout is the longest time for the end of a process that was asked to end.
	StopTimeout = 2 * room * time.Second
	// CallTimeout is the longest time for a call.
	CallTimeout = 2 * room * time.Second
	// SuiteTimeout is the longest time for a program that makes many calls, which takes three seconds.
	SuiteTimeout = 6 * room * time.Second
	// InstallTimeout is the longest time for packages to be fetched from the npm registry and compiled.
	InstallTimeout = 30 * time.Minute
)

// Strict reports whether figures are measured, by tests that have the machine to themselves. Otherwise tests share it,
// as in CI.
func Strict() bool { return os.Getenv("DURWARD_TEST_STRICT") != "" }

// Within returns the bound of a figure: the promised time when figures are measured, and thirty times that otherwise:
// ten times for the tests beside it, three times for a slow machine.
func Within(promised time.Duration) time.Duration {
	if Strict() {
		return promised
	}
	return 30 * promised
}

// Figures makes a test with figures run alone when figures are measured, and in parallel with others otherwise.
func Figures(t *testing.T) {
	t.Helper()
	if !Strict() {
		t.Parallel()
	}
}
