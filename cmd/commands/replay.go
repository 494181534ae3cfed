package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/policy/replay"
	"github.com/durward-gateway/durward/storage"
)

const (
	// replayExamples is the number of differences of each kind that are shown unless --limit says otherwise.
	replayExamples = 10
	// replayStep is the number of records that are read between two lines of progress.
	replayStep = 100_000
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "replay",
		Usage: "--policy <id> [--since <time>] [--until <time>] [--data <directory>] [--database <reference>] [--limit <n>] [--json]",
		Short: "Runs a policy over the audit log and shows what it would have decided otherwise",
		Long: `
Runs a policy of any status, a draft above all, over the calls that the audit log
remembers, as though it had been active, and shows which of them it would newly deny,
newly allow or newly ask for: how many, by tool and rule, and the latest of each as
examples. Nothing is changed and nothing is called. A gateway may run beside it.

Only calls count that the policy would decide on: those of its server, by the agents
that it is for. When it is for all agents, those that another active policy names are
left to that one.

Nothing is guessed. The audit log keeps the arguments of calls only where the
configuration has 'audit { arguments on }', never the values that it redacts, and none
of a token's claims but roles and groups. A call whose decision depends on what was
not recorded counts as not judged, and the output says what was missing.

--since and --until take a time such as 2026-01-31T12:00:00Z, or how long ago: 7d, 24h,
90m. With --json every difference is an object on a line of its own, and the last line
is an object with the counts; --limit then bounds the differences when it is given.

The exit code is 0 when the policy was replayed, whatever it would have decided.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o replayOptions
			cmd.Flags().StringVar(&o.policy, "policy", "", "Id of the policy")
			cmd.Flags().StringVar(&o.since, "since", "7d", "The first time, or how long ago")
			cmd.Flags().StringVar(&o.until, "until", "", "The time behind the last one, or how long ago (default: now)")
			o.source.flags(cmd)
			cmd.Flags().IntVar(&o.limit, "limit", replayExamples, "How many calls of each kind of difference are shown")
			cmd.Flags().BoolVar(&o.json, "json", false, "One JSON object per difference, and one with the counts")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				o.limited = cmd.Flags().Changed("limit")
				return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
		},
	})
}

type replayOptions struct {
	source               auditOptions
	policy, since, until string
	limit                int
	limited, json        bool
}

// replayed holds the result of a complete replay.
type replayed struct {
	policy   storage.PolicyView
	from, to time.Time
	tally    *replay.Tally
}

func (o replayOptions) run(ctx context.Context, out, progress io.Writer) error {
	if o.policy == "" {
		return errors.New("say which policy to replay with --policy and its id, which GET /api/v2/policies lists")
	}
	id, ok := validate.UUID(o.policy)
	if !ok {
		return fmt.Errorf("--policy %q is no id of a policy: it takes a uuid, which GET /api/v2/policies lists", o.policy)
	}
	if o.limit < 0 {
		return fmt.Errorf("--limit %d is less than none", o.limit)
	}
	from, to, err := o.span(time.Now())
	if err != nil {
		return err
	}
	store, journals, err := o.source.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	policy, err := findPolicy(ctx, store, id)
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("no policy in %s has the id %s; GET /api/v2/policies lists the policies of an organization", o.source.place(), o.policy)
	}
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	present, err := store.ServerPolicies(ctx, policy.OrganizationID, policy.ServerID)
	if err != nil {
		return fmt.Errorf("reading the server's policies: %w", err)
	}
	judge, err := replay.NewJudge(policy.Policy, present)
	if err != nil {
		return fmt.Errorf("the policy cannot be used as it is: %w", err)
	}
	r := replayed{policy: policy, from: from, to: to, tally: replay.NewTally(o.limit)}
	var report replayReport = &textReport{out: out, names: newUserNames(store, policy.OrganizationID)}
	if o.json {
		report = newJSONReport(out, o.limit, o.limited)
	}
	if !isTerminal(progress) {
		progress = io.Discard
	}
	serverID := []byte(policy.ServerID)
	err = query.Everything(ctx, journals, store, policy.OrganizationID, from, to, func(record *storage.AuditRecord) error {
		if n := r.tally.Records; n > 0 && n%replayStep == 0 {
			fmt.Fprintf(progress, "%d records read\n", n)
		}
		var e storage.AuditEntry
		if bytes.Contains(record.Text, serverID) { // the others need not be read
			e, _ = format.EntryOf(record) // tampered with: `durward audit verify` tells
		}
		verdict, difference, missing, err := judge.Judge(ctx, &e)
		if err != nil {
			return err
		}
		if r.tally.Add(verdict, &difference, missing); verdict == replay.Changed {
			return report.difference(&difference)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("replaying the audit log: %w", err)
	}
	return report.end(ctx, &r)
}

// span returns the requested time span.
func (o replayOptions) span(now time.Time) (from, to time.Time, err error) {
	if from, err = parseMoment("since", o.since, now); err != nil {
		return from, to, err
	}
	to = now.Add(time.Second)
	if o.until != "" {
		if to, err = parseMoment("until", o.until, now); err != nil {
			return from, to, err
		}
	}
	if !from.Before(to) {
		return from, to, fmt.Errorf("--since %s is not before --until %s", from.Format(time.RFC3339), to.Format(time.RFC3339))
	}
	return from, to, nil
}

// parseMoment reads a time, or a duration before now.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	ago, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var days int
		days, err = strconv.Atoi(number)
		if err == nil && (days > maxDays || days < 0) {
			err = strconv.ErrRange
		}
		ago = time.Duration(days) * 24 * time.Hour
	}
	if err != nil || ago < 0 {
		return time.Time{}, fmt.Errorf("--%s %q is neither a time such as 2026-01-31T12:00:00Z nor how long ago, such as 7d, 24h or 90m", flag, text)
	}
	return now.Add(-ago).UTC(), nil
}

// maxDays bounds a duration before now, in days.
const maxDays = 36_500

// findPolicy looks for a policy in all organizations: a command line has none.
func findPolicy(ctx context.Context, store storage.Store, id string) (storage.PolicyView, error) {
	organizations, err := store.Organizations(ctx)
	if err != nil {
		return storage.PolicyView{}, err
	}
	for _, o := range organizations {
		p, err := store.Policy(ctx, o.ID, id)
		if err == nil || !errors.Is(err, storage.ErrNotFound) {
			return p, err
		}
	}
	return storage.PolicyView{}, storage.ErrNotFound
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
