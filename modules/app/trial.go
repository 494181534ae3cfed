package app

import "sync/atomic"

// trial is where a process that only tries a configuration keeps what a start would keep elsewhere; nil: it serves.
var trial atomic.Pointer[string]

// BeginTrial has this process load configurations as a start does, and write nothing but to that directory. It must be called
// before one is loaded, and it does not end: what was tried cannot serve.
func BeginTrial(directory string) { trial.Store(&directory) }

// Trial returns the directory of BeginTrial, and whether it was called.
func Trial() (directory string, trying bool) {
	if d := trial.Load(); d != nil {
		return *d, true
	}
	return "", false
}
