// Package commands holds durward's subcommands, one file each, and registers them
// with Caddy's command line. It is a package apart from cmd/durward so that custom
// builds have them too.
package commands
