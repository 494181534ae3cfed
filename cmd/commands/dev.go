//go:build !nodev

package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/caddyfile"
	"github.com/durward-gateway/durward/cmd/commands/devmode"
	"github.com/durward-gateway/durward/cmd/commands/terminal"
	"github.com/durward-gateway/durward/modules/devidp/welcome"
	"github.com/durward-gateway/durward/modules/logwriter"
)

const (
	// startTimeout bounds the time from the configuration of the gateway to its readiness.
	startTimeout = 30 * time.Second
	readyPoll    = 20 * time.Millisecond
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "dev",
		Usage: "[--listen <address>] [--data <directory>] [--reset] [--demo-data] [--tour]",
		Short: "Runs everything on this machine, to try it out and to develop against",
		Long: `
Runs the gateway on this machine with everything around it: an embedded store, a
development identity provider whose users are picked from a list, and a demo third
party with an OAuth server, an MCP server and an event stream, and demo models that
answer as OpenAI's and Anthropic's do. Nothing else needs to be installed or running,
and nothing leaves the machine.

It prints where to look, and runs until it is stopped. The page at its address in a
browser has the rest: users, texts for MCP clients, how to call models. A later start
finds the data again: users, keys, servers and connections. Everything is kept in the
data directory and nowhere else. Once it is ready, the file "address" in there holds the
address that it listens on.

With --demo-data the organization acme has a month of made traffic, so that the console
has something to show: log in as admin@example.test. It is made once, and stays until
--reset.

Anybody who reaches it can log in as anybody, so it listens on loopback addresses
only.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o devOptions
			cmd.Flags().StringVar(&o.listen, "listen", welcome.DefaultListen, "Loopback address to listen on; port 0 chooses a free one")
			cmd.Flags().StringVar(&o.data, "data", defaultData, "Directory that keeps everything")
			cmd.Flags().BoolVar(&o.reset, "reset", false, "Delete what development mode keeps in the data directory, and start afresh")
			cmd.Flags().BoolVar(&o.demoData, "demo-data", false, "Fill the organization acme with a month of made traffic, once")
			cmd.Flags().BoolVar(&o.tour, "tour", false, "Run the tour once everything runs, and go on running")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) }
		},
	})
}

type devOptions struct {
	listen, data string
	reset, tour  bool
	demoData     bool
}

// run starts everything and returns only when that fails: signals end the process.
func (o devOptions) run(ctx context.Context, out io.Writer) error {
	wanted, err := devmode.ParseListen(o.listen)
	if err != nil {
		return err
	}
	directory, err := devmode.OpenDirectory(o.data)
	if err != nil {
		return err
	}
	defer directory.Close()
	if o.reset {
		if err := directory.Reset(); err != nil {
			return err
		}
	}
	if o.demoData {
		if err := directory.KeepDemoData(); err != nil {
			return err
		}
	}
	if err := directory.ForgetAddress(); err != nil {
		return err
	}
	address, err := devmode.FreeAddress(ctx, wanted)
	if err != nil {
		return err
	}
	// The handler of signals ends the process, so deferred functions here do not run then.
	caddy.OnExit(func(context.Context) { _ = directory.Close() })
	caddy.TrapSignals()
	gateway := "http://" + address.String()
	if err := begin(ctx, out, directory, address, gateway); err != nil {
		return err
	}
	if o.tour {
		o.showTour(ctx, out, gateway)
	}
	select {}
}

// begin starts the gateway and prints the screen. Messages of Caddy until then are for programs; errors stand before
// the line with the advice. Caddy's goroutines still write when the gateway is ready, so they wait for the screen
// too.
func begin(ctx context.Context, out io.Writer, directory *devmode.Directory, address netip.AddrPort, gateway string) error {
	logwriter.Quiet(true)
	defer logwriter.Quiet(false)
	if err := start(ctx, directory, address); err != nil {
		return withAdvice(fmt.Errorf("starting development mode: %w", err), "")
	}
	if err := directory.WriteAddress(address.String()); err != nil {
		return err
	}
	fmt.Fprint(out, welcome.New(gateway, directory.Path()).Banner(terminal.Of(out).Color))
	return nil
}

// start runs the gateway and returns once it is ready.
func start(ctx context.Context, directory *devmode.Directory, address netip.AddrPort) error {
	if err := setEnvironment(directory, address); err != nil {
		return err
	}
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(caddyfile.Dev, map[string]any{"filename": "dev.caddyfile"})
	if err != nil {
		return err
	}
	if err := caddy.Load(config, true); err != nil {
		return err
	}
	return awaitReady(ctx, "http://"+address.String()+"/readyz")
}

// withDemoData goes on after `identity dev` in dev.caddyfile. All pages say that the data is made.
const withDemoData = `{
			demo_data
		}
		branding {
			name "durward with demo data"
		}`

// setEnvironment tells dev.caddyfile its directory and address, and whether there is demo data. It makes Caddy keep its own
// files in the data directory.
func setEnvironment(directory *devmode.Directory, address netip.AddrPort) error {
	format := "json"
	if terminal.Of(os.Stderr).Color {
		format = "console"
	}
	demo := ""
	if directory.HasDemoData() {
		demo = withDemoData
	}
	for name, value := range map[string]string{
		"DURWARD_LOG_FORMAT": format, "DURWARD_DEMO_DATA": demo, "DURWARD_DATA": directory.PathInCaddyfile(), "DURWARD_HOST": address.Addr().String(), "DURWARD_PORT": fmt.Sprint(address.Port()),
		"XDG_DATA_HOME": directory.Path(), "XDG_CONFIG_HOME": directory.Path(),
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	// These two were computed before this function ran.
	caddy.DefaultStorage.Path = caddy.AppDataDir()
	caddy.ConfigAutosavePath = filepath.Join(caddy.AppConfigDir(), "autosave.json")
	return nil
}

func awaitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := newClient()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		status, err := probe(ctx, client, url)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("the gateway does not answer after %v: %w", startTimeout, err)
			}
			return fmt.Errorf("the gateway is not ready after %v: %s answers %d", startTimeout, url, status)
		}
	}
}

func probe(ctx context.Context, client *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// showTour runs the tour against this process. A failure is shown and leaves everything running, so that it can be
// examined.
func (o devOptions) showTour(ctx context.Context, out io.Writer, gateway string) {
	_ = tellTour(ctx, out, gateway) // it has reported its failure
	fmt.Fprintf(out, "\nThe gateway goes on running at %s. Ctrl-C stops it.\n", gateway)
}
