// Package commands registers durward's subcommands with Caddy's command line. Each
// has a file of its name; parts of `doctor` have files of their own. The package also
// changes commands of Caddy's: `run` refuses a second gateway, `validate` starts the
// configuration for a trial, errors of a start end with advice, and commands that
// would replace the binary refuse to. It is apart from cmd/durward so that custom
// builds have all this too.
package commands
