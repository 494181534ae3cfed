package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/ops/storemigrate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/sqlite"
)

// progressEvery is the time between two lines of progress.
const progressEvery = 2 * time.Second

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "migrate-store",
		Usage: "--from sqlite:<path> --to <reference> [--anew]",
		Short: "Copies a SQLite store into an empty PostgreSQL database",
		Long: `
Copies everything that a gateway keeps from a SQLite file into a PostgreSQL database,
table by table, and compares both sides by the number of their rows and by a digest of
each table. The gateway must be stopped; the file is only read, and nothing can be
started on it meanwhile.

What was interrupted goes on where it was when the command is started again. Until a copy has
come to its end, no gateway starts on the database. A database that holds anything else
is refused. --anew deletes what an unfinished copy has left and begins from the start:
that is needed when a gateway has run on the file in between.

Nothing is decrypted: secrets are copied as they are. The new configuration needs the
same master_key. The address of the database may hold a password: give a reference to
it, {env.NAME} or {file./path}.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o moveOptions
			cmd.Flags().StringVar(&o.from, "from", "", "The store to copy, sqlite: and the path of its file")
			cmd.Flags().StringVar(&o.to, "to", "", "Reference to the address of an empty PostgreSQL database, {env.NAME} or {file./path}")
			cmd.Flags().BoolVar(&o.anew, "anew", false, "Delete what an unfinished copy has left, and begin from the start")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
		},
	})
}

type moveOptions struct {
	from, to string
	anew     bool
}

func (o moveOptions) run(ctx context.Context, out, progress io.Writer) (err error) {
	path, ok := strings.CutPrefix(o.from, "sqlite:")
	if !ok || path == "" {
		return errors.New("say with --from which store to copy, such as sqlite:/var/lib/durward/durward.db")
	}
	if o.to == "" {
		return errors.New("say with --to where to copy it, such as {env.DURWARD_DATABASE_URL}")
	}
	dsn, err := settings.ResolveSecret(strings.TrimPrefix(o.to, "postgres:"))
	if err != nil {
		return fmt.Errorf("resolving --to: %w", err)
	}
	from, err := sqlite.OpenExclusively(ctx, path, sqlite.Options{Timeout: toolTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if left := spooled(filepath.Dir(path)); left > 0 {
		return fmt.Errorf("%s of what models were used is not in the store yet: start the gateway on it once more and stop it", counted(left, "batch"))
	}
	to, err := postgres.OpenArrival(ctx, dsn.Reveal(), postgres.Options{Timeout: toolTimeout})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }() //nolint:contextcheck // what was opened is closed although ctx may have ended
	began := time.Now()
	lines := moveLines{out: progress, began: began}
	result, err := storemigrate.Copy(ctx, from, to, storemigrate.Options{Anew: o.anew, Progress: lines.tell})
	switch {
	case errors.Is(err, storemigrate.ErrDiffers), errors.Is(err, postgres.ErrOtherSource):
		return fmt.Errorf("%w; the file was changed since the copy began, or is another one: start again with --anew", err)
	case errors.Is(err, postgres.ErrNotEmpty):
		return fmt.Errorf("%w: give an empty database", err)
	case err != nil:
		return err
	}
	var rows int64
	for _, t := range result.Tables {
		rows += t.Rows
		fmt.Fprintf(out, "%-20s %10d rows  sha256 %s\n", t.Table, t.Rows, t.Digest)
	}
	fmt.Fprintf(out, "%d rows in %d tables are the same on both sides (%s)\n", rows, len(result.Tables), time.Since(began).Round(time.Second))
	if journals := filepath.Join(filepath.Dir(path), "audit"); exists(journals) {
		fmt.Fprintf(out, "What the audit log has not stored yet is in %s: move that directory to %s of the node that goes on.\n",
			journals, filepath.Join(app.LocalDirectory(), "audit"))
	}
	fmt.Fprintf(out, "The new configuration needs the same master_key. Keep %s until the new gateway has proved itself.\n", path)
	return nil
}

// spooled counts the usage records that a gateway still has beside its store.
func spooled(directory string) (n int) {
	_ = filepath.WalkDir(filepath.Join(directory, "usage"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.HasSuffix(d.Name(), ".tmp") {
			n++
		}
		return nil // a missing directory holds nothing
	})
	return n
}

// moveLines writes lines of progress: when a step begins, and now and then.
type moveLines struct {
	out         io.Writer
	began, last time.Time
	step        storemigrate.Step
	before      int64 // rows that were there when the step began
}

func (l *moveLines) tell(p storemigrate.Progress) {
	now := time.Now()
	if p.Step != l.step {
		l.step, l.began, l.before = p.Step, now, p.Done
	} else if now.Sub(l.last) < progressEvery && p.Done < p.All {
		return
	}
	l.last = now
	percent, rate := 100.0, 0.0
	if p.All > 0 {
		percent = 100 * float64(p.Done) / float64(p.All)
	}
	if took := now.Sub(l.began).Seconds(); took > 0 {
		rate = float64(p.Done-l.before) / took
	}
	fmt.Fprintf(l.out, "%s %s: %d of %d rows (%.0f %%), %.0f rows/s\n", p.Step, p.Table, p.Done, p.All, percent, rate)
}
