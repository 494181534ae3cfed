package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/modules/app/process"
)

// A trial loads a configuration with the code of a start, and changes nothing: files of a start go to a directory
// that is removed in the end, logs are discarded.

// trialAdapter is the name of the adapter by which Caddy's `validate` reads the configuration of a trial.
const trialAdapter = "durward_trial"

func init() { caddyconfig.RegisterAdapter(trialAdapter, new(trialOf)) }

// trialOf adapts a configuration as usual, and makes a trial of it.
type trialOf struct {
	adapter   string // the usual one; "": it is JSON
	directory string
}

// trying is the trial of this process.
var trying trialOf

// Adapt implements caddyconfig.Adapter.
func (*trialOf) Adapt(body []byte, options map[string]any) ([]byte, []caddyconfig.Warning, error) {
	var warnings []caddyconfig.Warning
	if trying.adapter != "" {
		usual := caddyconfig.GetAdapter(trying.adapter)
		if usual == nil {
			return nil, nil, fmt.Errorf("unrecognized config adapter: %s", trying.adapter)
		}
		var err error
		if body, warnings, err = usual.Adapt(body, options); err != nil {
			return nil, warnings, err
		}
	}
	body, err := harmless(body, trying.directory, true)
	return body, warnings, err
}

// validateByTrial makes `validate` change nothing.
func validateByTrial(validate func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, arguments []string) error {
		directory, end, err := beginTrial()
		if err != nil {
			return err
		}
		defer end()
		config, adapter := cmd.Flags().Lookup("config"), cmd.Flags().Lookup("adapter")
		trying = trialOf{adapter: adapter.Value.String(), directory: directory}
		if trying.adapter == "" && isCaddyfile(config.Value.String()) {
			trying.adapter = "caddyfile"
		}
		if err := adapter.Value.Set(trialAdapter); err != nil {
			return err
		}
		return validate(cmd, arguments)
	}
}

func beginTrial() (directory string, end func(), err error) {
	if directory, err = os.MkdirTemp("", "durward-trial-*"); err != nil {
		return "", nil, fmt.Errorf("making a directory for the trial: %w", err)
	}
	process.BeginTrial(directory)
	return directory, func() { _ = os.RemoveAll(directory) }, nil
}

// harmless changes a configuration so that loading it writes only to a directory. warns lets warnings go to standard
// error.
func harmless(config []byte, directory string, warns bool) ([]byte, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(config, &whole); err != nil {
		return nil, fmt.Errorf("config is not valid JSON: %w; did you mean to use a config adapter (the --adapter flag)?", err)
	}
	if whole == nil {
		whole = make(map[string]json.RawMessage)
	}
	logging := make(map[string]json.RawMessage)
	logs := make(map[string]map[string]json.RawMessage)
	if err := errors.Join(decodeMember(whole, "logging", &logging), decodeMember(logging, "logs", &logs)); err != nil {
		return nil, err
	}
	for _, log := range logs {
		if log == nil {
			continue
		}
		if err := muffle(log); err != nil {
			return nil, err
		}
	}
	if _, ok := logs["default"]; !ok {
		logs["default"] = map[string]json.RawMessage{"writer": json.RawMessage(`{"output":"discard"}`)}
	}
	if warns {
		logs[trialAdapter] = map[string]json.RawMessage{
			"writer": json.RawMessage(`{"output":"stderr"}`), "level": json.RawMessage(`"WARN"`),
			"exclude": json.RawMessage(`["http.auto_https"]`), // it warns of what is written there
		}
	}
	var storage struct {
		Module string `json:"module"`
	}
	if err := decodeMember(whole, "storage", &storage); err != nil {
		return nil, err
	}
	caddy.DefaultStorage.Path = filepath.Join(directory, "storage") // after an --envfile, which sets it
	if storage.Module == "file_system" {
		delete(whole, "storage")
	}
	if err := errors.Join(encodeMember(logging, "logs", logs), encodeMember(whole, "logging", logging)); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}

// muffle puts our writer before a log's own, which opens nothing in a trial.
func muffle(log map[string]json.RawMessage) error {
	var writer struct {
		Output string `json:"output"`
	}
	if err := decodeMember(log, "writer", &writer); err != nil || writer.Output == "durward" {
		return err
	}
	muffled := map[string]any{"output": "durward"}
	if own, ok := log["writer"]; ok {
		muffled["writer"] = own
	}
	return encodeMember(log, "writer", muffled)
}

func decodeMember(object map[string]json.RawMessage, name string, into any) error {
	if value, ok := object[name]; ok {
		if err := json.Unmarshal(value, into); err != nil {
			return fmt.Errorf("reading the configuration's %s: %w", name, err)
		}
	}
	return nil
}

func encodeMember(object map[string]json.RawMessage, name string, value any) (err error) {
	object[name], err = json.Marshal(value)
	return err
}

// quietly runs f, and discards Caddy's messages about reading a configuration meanwhile.
func quietly(f func()) {
	_, usual, _ := caddy.BufferedLog()
	f()
	caddy.UnbufferDefaultLogger(zap.NewNop())
	caddy.BufferedLog()
	caddy.UnbufferDefaultLogger(usual)
}

// loadQuietly reads a configuration as commands of Caddy's do.
func loadQuietly(file, adapter string) (text []byte, err error) {
	quietly(func() { text, _, _, err = caddycmd.LoadConfig(file, adapter) })
	return text, err
}

// tryStart loads a configuration as far as a start does before it listens.
func tryStart(text []byte) (caddy.Context, error) {
	directory, end, err := beginTrial()
	if err != nil {
		return caddy.Context{}, err
	}
	defer end()
	text, err = harmless(caddy.RemoveMetaFields(text), directory, false)
	if err != nil {
		return caddy.Context{}, err
	}
	var config *caddy.Config
	if err := caddy.StrictUnmarshalJSON(text, &config); err != nil {
		return caddy.Context{}, fmt.Errorf("decoding config: %w", err)
	}
	var loaded caddy.Context
	quietly(func() { loaded, err = caddy.ProvisionContext(config) })
	return loaded, err
}
