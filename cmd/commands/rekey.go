package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/ops/rekey"
	"github.com/durward-gateway/durward/internal/seal"
)

// takeUp is the time after which every running gateway seals with a new data key: gateways use a key that is a minute
// old, and have learned of it by then.
const takeUp = 90 * time.Second

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "rekey",
		Usage: "[--config <file>] [--data-keys]",
		Short: "Rotates the master key, and on request the data keys, while gateways run",
		Long: `
Wraps the data keys of the store with the first master key of the configuration. To
rotate the master key, put the new one first in master_key, keep the former one behind
it, and reload every node; then run this command; then take the former key out and
reload again. Until the end every node can read whatever the others write.

With --data-keys a new data key is made as well, and everything that is sealed in the
store is sealed anew with it: credentials, client secrets, the providers' keys,
arguments of held calls. Gateways go on reading and writing. What they write at that
moment stays as they wrote it, and is sealed anew in a later pass: the command ends
when nothing is left, at the soonest a minute and a half after the key was made. When it
is interrupted, start it again: it goes on.

Former data keys stay in the store, wrapped by the new master key: digests of API keys
and signatures of the audit log were made with keys that are derived from them.

The exit code is 1 when values were found that do not open. They did not before either.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o rekeyOptions
			o.config.add(cmd)
			cmd.Flags().BoolVar(&o.dataKeys, "data-keys", false, "Make a new data key and seal everything anew")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
		},
	})
}

type rekeyOptions struct {
	config   configFlags
	dataKeys bool
}

func (o rekeyOptions) run(ctx context.Context, out, progress io.Writer) (err error) {
	config, err := o.config.load()
	if err != nil {
		return err
	}
	masters, err := config.masterKeys()
	if err != nil {
		return err
	}
	store, err := config.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	n, err := rekey.Rewrap(ctx, store, masters)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s rewrapped; all are wrapped by master key %s\n", counted(n, "data key"), masters[0].ID())
	if !o.dataKeys {
		return nil
	}
	return rotateDataKeys(ctx, store, masters, takeUp, out, progress)
}

// rotateDataKeys continues a rotation that was begun, or begins one.
func rotateDataKeys(ctx context.Context, store keyStore, masters []seal.MasterKey, takeUp time.Duration, out, progress io.Writer) error {
	ring, err := rotationKeyring(ctx, store, masters, takeUp, out)
	if err != nil {
		return err
	}
	keys, err := store.DataKeys(ctx)
	if err != nil {
		return err
	}
	settled := keys[len(keys)-1].CreatedAt.Add(takeUp)
	var resealed int64
	for {
		began := time.Now()
		pass, err := rekey.Reseal(ctx, store, ring, resealLines(progress, time.Now))
		resealed += pass.Resealed
		if err != nil {
			return fmt.Errorf("after %s: %w; start again to go on", counted(resealed, "value"), err)
		}
		if began.Before(settled) {
			fmt.Fprintf(out, "%s sealed anew; waiting until every gateway uses the new key, until %s\n", counted(resealed, "value"), settled.Format(time.TimeOnly))
			select {
			case <-time.After(time.Until(settled)):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if pass.Resealed > 0 || pass.Changed > 0 {
			continue // it was written meanwhile
		}
		fmt.Fprintf(out, "%s sealed anew; all %d are sealed with data key %d\n", counted(resealed, "value"), pass.Sealed-int64(len(pass.Broken)), ring.Newest())
		for _, b := range pass.Broken {
			fmt.Fprintf(out, "does not open: %s.%s of %s\n", b.Table, b.Column, printable(b.Key))
		}
		if len(pass.Broken) > 0 {
			return fmt.Errorf("%s did not open, before or after: their owners have to give them anew", counted(len(pass.Broken), "value"))
		}
		return nil
	}
}

// rotationKeyring opens the keyring with the newest data key, with which everything must be sealed. That key is from
// an unfinished rotation, or is a new one.
func rotationKeyring(ctx context.Context, store keyStore, masters []seal.MasterKey, takeUp time.Duration, out io.Writer) (*seal.Keyring, error) {
	ring, err := seal.OpenKeyring(ctx, masters, store, time.Now)
	if err != nil {
		return nil, err
	}
	left, err := rekey.Older(ctx, store, ring)
	if err != nil {
		return nil, err
	}
	keys, err := store.DataKeys(ctx)
	if err != nil {
		return nil, err
	}
	// The first key of a store belongs to no rotation. Gateways may not yet have learned of another young key: the
	// interrupted rotation had then sealed everything anew and waited for them.
	if left > 0 || len(keys) > 1 && time.Since(keys[len(keys)-1].CreatedAt) < takeUp {
		fmt.Fprintf(out, "going on with the rotation to data key %d: %s left\n", ring.Newest(), counted(left, "value"))
		return ring, nil
	}
	version, err := rekey.AddDataKey(ctx, store, masters[0], time.Now())
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "made data key %d\n", version)
	return seal.OpenKeyring(ctx, masters, store, time.Now)
}

// resealLines writes a line of progress now and then.
func resealLines(out io.Writer, clock func() time.Time) func(rekey.Progress) {
	last := clock()
	return func(p rekey.Progress) {
		if now := clock(); now.Sub(last) >= progressEvery {
			last = now
			fmt.Fprintf(out, "%s: %d of %d rows\n", p.Table, p.Rows, p.Total)
		}
	}
}
