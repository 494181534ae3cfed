package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/ops/backup"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "backup",
		Usage: "[--config <file>] --to <file or directory>",
		Short: "Writes everything that the gateway keeps into one archive, while it runs",
		Long: `
Copies the journals of the audit log, the usage that is not in the store yet, and the
SQLite store into one compressed archive. The gateway goes on. The archive holds
everything that the gateway had acknowledged when the backup began. It appears under its
name when it is complete; in a directory, its name has the time.

The master key is not in it: keep that apart. Nothing is decrypted, and the archive is of
no use without the key. Certificates and the configuration are not in it either.

With PostgreSQL the archive holds this node's journals and usage only. Run the command
on each node first, and back up the database afterwards, by its own means.

It changes nothing. While it runs, it needs the size of the store twice beside the archive.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o backupOptions
			o.config.add(cmd)
			cmd.Flags().StringVar(&o.to, "to", "", "The archive to write, or a directory for it")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
		},
	})
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "restore",
		Usage: "[--config <file>] --from <archive>",
		Short: "Takes an archive of `durward backup` out to where the configuration says",
		Long: `
Takes the store, the journals and the usage out of an archive, to the places that the
configuration names. It runs before the first start of the gateway, on this or on
another machine. It overwrites nothing: where a gateway has run, move its files away
first. Nothing is in its place before the whole archive was read and compared with its
sums, and before the configuration's master_key has opened the data keys.

Run it as the user of the gateway, or as root: files then belong to the owner of the
directory.

Sessions, keys and connections are as they were when the backup began. Revoke again
what was revoked since. Do not run the former gateway beside the restored one: both
would use the same refresh tokens.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o restoreOptions
			o.config.add(cmd)
			cmd.Flags().StringVar(&o.from, "from", "", "The archive to restore")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) }
		},
	})
}

type backupOptions struct {
	config configFlags
	to     string
}

func (o backupOptions) run(ctx context.Context, out, progress io.Writer) error {
	if o.to == "" {
		return errors.New("say with --to which file to write, or the directory for it")
	}
	config, err := o.config.load()
	if err != nil {
		return err
	}
	began := time.Now()
	source, err := config.source(began)
	if err != nil {
		return err
	}
	to := o.to
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		to = filepath.Join(to, "durward-"+began.UTC().Format("20060102T150405Z")+".tar.gz")
	}
	stop := tellSize(progress, to)
	manifest, err := backup.Write(ctx, source, to)
	stop()
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	info, err := os.Stat(to)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s, %s (%s)\n", to, counted(len(manifest.Files), "file"), megabytes(info.Size()), time.Since(began).Round(time.Millisecond))
	if source.Snapshot == nil {
		fmt.Fprintln(out, "It holds the files of this node. Back up the database when every node has one, such as with pg_dump.")
	}
	fmt.Fprintln(out, "It can be restored with the same master_key only. Keep that apart from it.")
	return nil
}

// source returns the gateway of the configuration.
func (c *gatewayConfig) source(now time.Time) (*backup.Source, error) {
	directory, err := c.directory()
	if err != nil {
		return nil, err
	}
	source := &backup.Source{Directory: directory, Manifest: backup.Manifest{Version: ownVersion(), MadeAt: now.UTC(), Store: c.Store.Driver}}
	switch c.Store.Driver {
	case "sqlite":
		path, err := c.path()
		if err != nil {
			return nil, err
		}
		source.Snapshot = func(ctx context.Context, to string) error {
			return sqlite.Snapshot(ctx, path, to, sqlite.Options{Timeout: toolTimeout})
		}
		source.Ends = chainsOf
	case "postgres":
	default:
		return nil, fmt.Errorf("the store %q is none that this command knows", c.Store.Driver)
	}
	return source, nil
}

// chainsOf returns the ends of the audit log's chains in a copy of a store.
func chainsOf(ctx context.Context, copied string) ([]storage.AuditChain, error) {
	store, err := sqlite.OpenReadOnly(ctx, copied, sqlite.Options{Timeout: toolTimeout, Momentary: true})
	if err != nil {
		return nil, err
	}
	chains, err := store.AuditChains(ctx, "")
	return chains, errors.Join(err, store.Close())
}

// tellSize prints every now and then how much of a backup was written, until stop is called.
func tellSize(progress io.Writer, to string) (stop func()) {
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		ticks := time.NewTicker(progressEvery)
		defer ticks.Stop()
		for {
			select {
			case <-ended:
				return
			case <-ticks.C:
			}
			if info, err := os.Stat(to + ".part.db"); err == nil {
				fmt.Fprintf(progress, "copying the store: %s\n", megabytes(info.Size()))
			}
			if info, err := os.Stat(to + ".part"); err == nil {
				fmt.Fprintf(progress, "writing the archive: %s\n", megabytes(info.Size()))
			}
		}
	}()
	return func() {
		close(ended)
		<-told
	}
}

// megabytes writes a size for people.
func megabytes(size int64) string { return fmt.Sprintf("%.1f MB", float64(size)/1e6) }

type restoreOptions struct {
	config configFlags
	from   string
}

func (o restoreOptions) run(ctx context.Context, out io.Writer) error {
	if o.from == "" {
		return errors.New("say with --from which archive to restore")
	}
	config, err := o.config.load()
	if err != nil {
		return err
	}
	target, err := config.target()
	if err != nil {
		return err
	}
	manifest, err := backup.Read(ctx, o.from, target)
	switch {
	case errors.Is(err, backup.ErrOccupied):
		return fmt.Errorf("%w; stop the gateway, and move what it has left to another directory", err)
	case err != nil:
		return fmt.Errorf("restoring %s: %w", o.from, err)
	}
	fmt.Fprintf(out, "%s of %s, made by durward %s, are in %s\n", counted(len(manifest.Files), "file"), manifest.MadeAt.Format(time.RFC3339), manifest.Version, target.Directory)
	if target.Store == "" {
		fmt.Fprintln(out, "Restore the database by its own means before the start.")
	}
	fmt.Fprintln(out, "Start the gateway, then run `durward audit verify`. Revoke again what was revoked since the backup.")
	return nil
}

// target returns the places of the configuration.
func (c *gatewayConfig) target() (*backup.Target, error) {
	masters, err := c.masterKeys()
	if err != nil {
		return nil, err
	}
	directory, err := c.directory()
	if err != nil {
		return nil, err
	}
	target := &backup.Target{Directory: directory}
	switch c.Store.Driver {
	case "sqlite":
		if target.Store, err = c.path(); err != nil {
			return nil, err
		}
		target.Check = func(ctx context.Context, store string) error { return opensWith(ctx, store, masters) }
	case "postgres":
	default:
		return nil, fmt.Errorf("the store %q is none that this command knows", c.Store.Driver)
	}
	return target, nil
}

// opensWith returns an error when the gateway could not start on a store with these master keys.
func opensWith(ctx context.Context, store string, masters []seal.MasterKey) error {
	keys, err := sqlite.KeysBefore(ctx, store)
	if err != nil || len(keys) == 0 {
		return err // no keys: the store is an older version's, which the first start brings up to date
	}
	_, err = seal.OpenKeyring(ctx, masters, foundKeys(keys), time.Now)
	return err
}

// foundKeys are data keys that were read already. There is one at least, so that none is added.
type foundKeys []storage.DataKey

// DataKeys implements storage.DataKeys.
func (f foundKeys) DataKeys(context.Context) ([]storage.DataKey, error) { return f, nil }

// AddDataKey implements storage.DataKeys.
func (f foundKeys) AddDataKey(context.Context, storage.DataKey) error {
	return errors.New("a restore adds no data key")
}
