package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/cmd/commands/devmode"
	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/identity/refused"
	"github.com/durward-gateway/durward/modules/app/adminapi"
)

// maxRefused bounds a gateway's answer.
const maxRefused = 4 << 20

// doctorTokens shows the tokens that a running gateway refused.
type doctorTokens struct {
	config          configFlags
	address, format string
}

func (o *doctorTokens) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens [--config <file>] [--address <admin endpoint>] [--format text|json]",
		Short: "Shows which access tokens a running gateway refused, and which line of its configuration would accept them",
		Long: `
Asks the gateway that runs on this machine, on its admin endpoint, for the last 100
access tokens that it refused within an hour: what each claims, which line of the
configuration refused it, and which would accept it. Signatures and whole tokens are
kept nowhere. What is marked as not signed by its issuer can be made up by anybody.
`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.OutOrStdout()) },
	}
	o.config.add(cmd)
	cmd.Flags().StringVar(&o.address, "address", "", "Admin endpoint of the gateway (default: that of the configuration, or of `durward dev` in "+defaultData+")")
	cmd.Flags().StringVar(&o.format, "format", "text", "text or json")
	return cmd
}

func (o *doctorTokens) run(out io.Writer) error {
	if o.format != "text" && o.format != "json" {
		return fmt.Errorf("--format %q is neither text nor json", o.format)
	}
	file := configFile(o.config.file)
	adapter := o.config.adapter
	if adapter == "" && file != "" && filepath.Ext(file) != ".json" {
		adapter = "caddyfile"
	}
	given := o.address
	if given == "" && file == "" {
		given = adminOfDev(defaultData)
	}
	address, err := caddycmd.DetermineAdminAPIAddress(given, nil, file, adapter)
	if err != nil {
		return err
	}
	response, err := caddycmd.AdminAPIRequest(address, http.MethodGet, adminapi.RefusedTokensPath, nil, nil)
	if err != nil {
		return fmt.Errorf("asking the gateway at %s: %w; name its configuration with --config (for `durward dev --data DIR`: --address unix//ABSOLUTE/DIR/admin.sock), and run this as its user", address, err)
	}
	defer response.Body.Close()
	var entries []refused.Entry
	if err := json.NewDecoder(io.LimitReader(response.Body, maxRefused)).Decode(&entries); err != nil {
		return fmt.Errorf("reading the gateway's answer: %w", err)
	}
	if o.format == "json" {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(entries)
	}
	_, err = io.WriteString(out, describeRefused(entries, file))
	return err
}

// adminOfDev returns the admin endpoint of the `durward dev` that keeps its data in a directory; "" where none runs.
// A killed one leaves its socket behind.
func adminOfDev(data string) string {
	socket, err := filepath.Abs(filepath.Join(data, devmode.SocketFile))
	if err != nil || !exists(socket) {
		return ""
	}
	address := "unix/" + socket
	if runningAt(address) == nil {
		return ""
	}
	return address
}

// describeRefused writes entries for people. Invisible characters in a sender's text are spelled out.
func describeRefused(entries []refused.Entry, file string) string {
	if len(entries) == 0 {
		return "This gateway has refused no access token within the last hour.\n"
	}
	tokens := tokensOf(file)
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s  %d  %s  from %s\n", e.At.Format("15:04:05Z"), e.Status, visible.Text(e.Path), e.From)
		if !e.Verified {
			b.WriteString("  NOT SIGNED by its issuer as far as can be told: anybody can have made up what follows\n")
		}
		fmt.Fprintf(&b, "  reason    %s\n", visible.Text(e.Reason))
		if e.RefusedBy != "" {
			place := lineOf(tokens, e.Issuer, e.Option)
			if place != "" {
				place = "  (" + place + ")"
			}
			fmt.Fprintf(&b, "  refused   %s%s\n", visible.Text(e.RefusedBy), place)
		}
		if e.AcceptedBy != "" {
			fmt.Fprintf(&b, "  accepted  %s\n", visible.Text(e.AcceptedBy))
		}
		fmt.Fprintf(&b, "  %s\n  claims    %s\n", visible.Text(e.Advice.Advice), visible.Text(string(e.Claims)))
		if len(e.Cut) > 0 {
			fmt.Fprintf(&b, "  left out  %s\n", visible.Text(strings.Join(e.Cut, ", ")))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// tokensOf returns the words of a Caddyfile; none when it cannot be read or is no Caddyfile. Imported files are not
// read.
func tokensOf(file string) []caddyfile.Token {
	if file == "" || filepath.Ext(file) == ".json" {
		return nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	tokens, err := caddyfile.Tokenize(content, file)
	if err != nil {
		return nil
	}
	return tokens
}

// lineOf returns the place of an option in the block of an identity, or of the identity when the option is not
// written and its default holds; "" when the identity is not found.
func lineOf(tokens []caddyfile.Token, issuer, option string) string {
	at := func(t caddyfile.Token) string { return fmt.Sprintf("%s:%d", t.File, t.Line) }
	for i := range tokens {
		if i+2 >= len(tokens) || tokens[i].Text != "identity" || tokens[i+1].Text != "oidc" || tokens[i+2].Text != issuer {
			continue
		}
		depth, words := 0, strings.Fields(option)
		for j := i + 3; j < len(tokens) && len(words) > 0; j++ {
			switch text := tokens[j].Text; {
			case text == "{":
				depth++
			case text == "}":
				depth--
			case depth == 1 && text == words[0] && tokens[j].Line != tokens[j-1].Line && (len(words) < 2 || j+1 < len(tokens) && tokens[j+1].Text == words[1]):
				return at(tokens[j])
			}
			if depth == 0 {
				break
			}
		}
		return at(tokens[i])
	}
	return ""
}
