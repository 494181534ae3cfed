// Package caddyfile implements durward's Caddyfile vocabulary: the global option, the site macro, the handler
// directives and their order, and the sample configurations that ship with the binary. Everything that can be written
// here can be written in JSON too.
package caddyfile
