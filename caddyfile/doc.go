// Package caddyfile is durward's Caddyfile vocabulary: the global option, the site macro, the handler directives and
// their order, and the sample configurations that ship with the binary. JSON is the truth: whatever is written here can
// be written there.
package caddyfile
