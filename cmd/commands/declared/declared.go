// Package declared holds the commands for configuration as files: apply, diff, export and schema. They work on a store, which the
// commands' common part opens, or through the API of a running gateway.
package declared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/seal"
)

// Target applies files to a gateway's store.
type Target interface {
	// Run plans, and unless it is dry carries out, what files ask for.
	Run(ctx context.Context, files []declare.File, how How) ([]declare.Plan, error)
	// Export writes the objects of an organization; "" is the only one.
	Export(ctx context.Context, organization string) ([]byte, error)
	Close() error
}

// How says what is done with files.
type How struct {
	Dry   bool // nothing is changed
	Prune bool // what former files made and these do not ends
}

// Surroundings open the targets of the commands.
type Surroundings struct {
	// Flags adds the flags that name a target, and returns what opens it, for reading only or not.
	Flags func(cmd *cobra.Command) func(ctx context.Context, readOnly bool) (Target, error)
	// Kinds are those of the providers of models that are linked in.
	Kinds func() (map[string]accounts.Protocol, error)
}

// changed is the exit code of a plan with changes.
const changed = 2

const places = `
Without --url the store of --config is used: of SQLite no gateway may have it open when
something is applied. With --url a running gateway does it, for the organization of the
token, which is an administrator's.
`

// Commands returns the commands.
func Commands(s Surroundings) []caddycmd.Command {
	return []caddycmd.Command{
		{
			Name:  "apply",
			Usage: "<file or directory>... [--prune] [--dry-run] [--json] [--config <file> | --url <address>]",
			Short: "Makes servers, agents, policies, models and limits equal to what files say",
			Long: `
Reads YAML or JSON files, shows which changes they ask for, and makes all of them in one
transaction for each organization. What the files do not mention stays. A file with an
error is refused whole, and so are the others with it.

With --prune, what former files made or took over and these files do not have ends. Give all
files of an organization then. What was made by hand stays.

With --dry-run nothing is changed, and the exit code is 2 when something would be.
` + places,
			CobraFunc: func(cmd *cobra.Command) {
				dry := cmd.Flags().Bool("dry-run", false, "Show the changes and make none")
				runCommand(s, cmd, dry)
			},
		},
		{
			Name:  "diff",
			Usage: "<file or directory>... [--prune] [--json] [--config <file> | --url <address>]",
			Short: "Shows what applying files would change",
			Long: `
Shows the changes that 'durward apply' would make, and makes none. The exit code is 2 when
there are some.
` + places,
			CobraFunc: func(cmd *cobra.Command) {
				dry := true
				runCommand(s, cmd, &dry)
			},
		},
		{
			Name:  "export",
			Usage: "[--organization <id or slug>] [--config <file> | --url <address>]",
			Short: "Writes servers, agents, policies, models and limits as a file that can be applied",
			Long: `
Writes all directory entries, servers, agents, policies, providers of models, aliases,
smart models, rate limits and budgets of an organization as YAML. Applied to another
gateway, it makes the same objects. Secrets are not written: a reference to the environment
stands in the place of each. Archived policies are left out, and limits for what is gone.
` + places,
			CobraFunc: func(cmd *cobra.Command) {
				open := s.Flags(cmd)
				organization := cmd.Flags().String("organization", "", "Id or slug of the organization, when there are several")
				cmd.Args = cobra.NoArgs
				cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
					target, err := open(cmd.Context(), true)
					if err != nil {
						return err
					}
					defer func() { err = errors.Join(err, target.Close()) }()
					text, err := target.Export(cmd.Context(), *organization)
					if err != nil {
						return err
					}
					_, err = cmd.OutOrStdout().Write(text)
					return err
				}
			},
		},
		schemaCommand(s),
	}
}

func schemaCommand(s Surroundings) caddycmd.Command {
	return caddycmd.Command{
		Name:  "schema",
		Short: "Writes the JSON Schema of the files, for editors",
		Long: `
Writes the JSON Schema of the files that 'durward apply' takes. An editor that knows it
completes and checks them. In VS Code, with its YAML extension, a file names it in its
first line:

	# yaml-language-server: $schema=durward.schema.json
`,
		CobraFunc: func(cmd *cobra.Command) {
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				kinds, err := s.Kinds()
				if err != nil {
					return err
				}
				models, err := accounts.NewBase(kinds, nil, accounts.Settings{})
				if err != nil {
					return err
				}
				text, err := declare.Schema(maxMeta, models)
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", text)
				}
				return err
			}
		},
	}
}

// runCommand makes apply, or diff.
func runCommand(s Surroundings, cmd *cobra.Command, dry *bool) {
	open := s.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "Write the plan as JSON")
	prune := cmd.Flags().Bool("prune", false, "End what former files made and these do not have")
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		code, err := run(cmd, open, args, How{*dry, *prune}, *asJSON)
		if err != nil || code == 0 {
			return err
		}
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return code, nil })(cmd, args)
	}
}

// run returns the exit code of a command that did not fail.
func run(cmd *cobra.Command, open func(context.Context, bool) (Target, error), args []string, how How, asJSON bool) (code int, err error) {
	files, err := Read(args)
	if err != nil {
		return 0, err
	}
	target, err := open(cmd.Context(), how.Dry)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	plans, err := target.Run(cmd.Context(), files, how)
	var problems declare.Problems
	switch {
	case errors.As(err, &problems):
		return 0, fmt.Errorf("the files are refused, and nothing was changed:\n%w", problems)
	case err != nil:
		return 0, err
	}
	if err := show(cmd.OutOrStdout(), plans, how.Dry, asJSON); err != nil {
		return 0, err
	}
	if how.Dry && slices.ContainsFunc(plans, func(p declare.Plan) bool { return len(p.Changes) > 0 }) {
		return changed, nil
	}
	return 0, nil
}

// Read reads files, and those of directories that end in .yaml, .yml or .json, in the order of their names.
func Read(paths []string) (files []declare.File, err error) {
	size := int64(0)
	add := func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if size += info.Size(); size > declare.MaxText {
			return fmt.Errorf("the files are larger than %d MiB together", declare.MaxText>>20)
		}
		text, err := os.ReadFile(path)
		files = append(files, declare.File{Name: path, Text: string(text)})
		return err
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			if err := add(path); err != nil {
				return nil, err
			}
			continue
		}
		if err := filepath.WalkDir(path, func(inner string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(inner)) {
				return err
			}
			return add(inner)
		}); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, errors.New("there is no file that ends in .yaml, .yml or .json")
	}
	return files, nil
}

func show(out io.Writer, plans []declare.Plan, dry, asJSON bool) error {
	if asJSON {
		if plans == nil {
			plans = []declare.Plan{}
		}
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(map[string]any{"applied": !dry, "plans": plans})
	}
	n, taken := 0, 0
	for _, p := range plans {
		taken += p.Taken
		for _, c := range p.Changes {
			n++
			fmt.Fprintln(out, line(c))
		}
	}
	if taken > 0 {
		fmt.Fprintf(out, "%d taken over: managed by files from now on\n", taken)
	}
	switch {
	case n == 0:
		fmt.Fprintln(out, "nothing to change")
	case dry:
		fmt.Fprintf(out, "%d to change\n", n)
	default:
		fmt.Fprintf(out, "%d changed\n", n)
	}
	return nil
}

func line(c declare.Change) string {
	text := fmt.Sprintf("%s %s %q", c.Action, c.Kind, c.Name)
	if c.Was != "" {
		text += fmt.Sprintf(" (was %q)", c.Was)
	}
	if c.Action == declare.Update {
		var fields []string
		for _, f := range c.Fields {
			fields = append(fields, f.Field)
		}
		text += ": " + strings.Join(fields, ", ")
	}
	if c.Ends != nil && c.Ends.Connections+c.Ends.Keys > 0 {
		text += fmt.Sprintf(": ends %d connections and %d keys", c.Ends.Connections, c.Ends.Keys)
	}
	return text
}

// Secrets reads references once.
func Secrets(resolve func(reference string) (seal.Secret, error)) func(string) (seal.Secret, error) {
	return func(reference string) (seal.Secret, error) {
		secret, err := resolve(reference)
		if err == nil && secret.Empty() {
			err = fmt.Errorf("%s is empty", reference)
		}
		return secret, err
	}
}
