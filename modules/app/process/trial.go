// Package process knows the process that the gateway runs in: its memory, and whether it only tries a configuration.
package process

import "sync/atomic"

// trial is the directory of a process that only tries a configuration. It is used instead of the places where a start
// keeps its files; nil: the process serves.
var trial atomic.Pointer[string]

// BeginTrial makes this process load configurations as a start does, but write only to that directory. It must be
// called before a configuration is loaded, and it does not end: a process that tried a configuration cannot serve.
func BeginTrial(directory string) { trial.Store(&directory) }

// Trial returns the directory of BeginTrial, and whether it was called.
func Trial() (directory string, trying bool) {
	if d := trial.Load(); d != nil {
		return *d, true
	}
	return "", false
}
