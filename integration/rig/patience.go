package rig

import (
	"os"
	"testing"
	"time"
)

// room is how many times longer tests wait for others than these take on a machine at rest. One with a third of its speed, on
// which other tests run, takes ten times as long.
const room = 100

// Bounds of waiting. They end tests that hang and say nothing about speed: bounds of speed are Within's.
const (
	// StartTimeout bounds the start of a process until it serves, which takes two seconds.
	StartTimeout = 2 * room * time.Second
	// StopTimeout bounds the end of a process that was asked to end.
	StopTimeout = 2 * room * time.Second
	// CallTimeout bounds a call.
	CallTimeout = 2 * room * time.Second
	// SuiteTimeout bounds a program that makes many calls, which takes three seconds.
	SuiteTimeout = 6 * room * time.Second
	// InstallTimeout bounds what is fetched from the npm registry and compiled.
	InstallTimeout = 30 * time.Minute
)

// Strict: figures are taken, of tests that have the machine to themselves. Otherwise tests share it, as in CI.
func Strict() bool { return os.Getenv("DURWARD_TEST_STRICT") != "" }

// Within is the bound of a figure: what is promised when figures are taken, and thirty times that otherwise: ten times for the
// tests beside it, three times for a slow machine.
func Within(promised time.Duration) time.Duration {
	if Strict() {
		return promised
	}
	return 30 * promised
}

// Figures has a test with figures run by itself when those are taken, and beside others otherwise.
func Figures(t *testing.T) {
	t.Helper()
	if !Strict() {
		t.Parallel()
	}
}
