package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/cmd/commands/declared"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/ops/rekey"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/sqlite"
)

func init() {
	for _, command := range declared.Commands(declared.Surroundings{Flags: declaredTarget, Kinds: modelKinds}) {
		caddycmd.RegisterCommand(command)
	}
}

// declaredTarget adds the flags that name a store or a gateway.
func declaredTarget(cmd *cobra.Command) func(ctx context.Context, readOnly bool) (declared.Target, error) {
	var config configFlags
	config.add(cmd)
	online := evalOptions{}
	cmd.Flags().StringVar(&online.gateway, "url", "", "Address of a running gateway, instead of --config")
	cmd.Flags().StringVar(&online.token, "token", adminToken, "Reference to an administrator's token, {env.NAME} or {file./path}, for --url")
	return func(ctx context.Context, readOnly bool) (declared.Target, error) {
		switch {
		case online.gateway == "":
			return config.declaredStore(ctx, readOnly, cmd.ErrOrStderr())
		case config.file != "":
			return nil, errors.New("give --url or --config, not both")
		}
		asking, err := online.evaluation()
		if err != nil {
			return nil, err
		}
		return declared.Online{Ask: asking.ask, Refused: refusedBy, Secret: settings.ResolveSecret}, nil
	}
}

// declaredStore opens the store for what files declare.
func (f *configFlags) declaredStore(ctx context.Context, readOnly bool, warn io.Writer) (declared.Target, error) {
	config, err := f.load()
	if err != nil {
		return nil, err
	}
	masters, err := config.masterKeys()
	if err != nil {
		return nil, err
	}
	if err := config.unused(ctx, readOnly); err != nil {
		return nil, err
	}
	store, err := config.open(ctx)
	if err != nil {
		return nil, err
	}
	ring, err := seal.OpenKeyring(ctx, masters, store, time.Now)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	guard, err := config.Egress.Guard(config.development())
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	offline := declared.Offline{
		Store: store, Keyring: ring, Secret: settings.ResolveSecret, Warn: warn,
		AnyIssuer: config.PublicURL == "" || config.development(),
	}
	if config.PublicURL == "" {
		offline.Warning = "the configuration has no public_url: the gateway's own address is not refused as that of a server, and any issuer is taken"
	}
	offline.CheckURL = func(u *url.URL) error { return app.CheckUpstream(u, guard, config.PublicURL) }
	if offline.Models, err = config.models(guard); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	for _, i := range config.Identities {
		offline.Providers = append(offline.Providers, i.Issuer)
	}
	return offline, nil
}

// modelKinds loads the kinds of providers of models that are linked in.
func modelKinds() (map[string]accounts.Protocol, error) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	defer cancel()
	return app.ModelKinds(ctx)
}

// models returns the models of the configuration, and those of development mode.
func (c *gatewayConfig) models(guard *netguard.Guard) (*accounts.Base, error) {
	kinds, err := modelKinds()
	if err != nil {
		return nil, err
	}
	var development app.DevelopmentIdentity
	if c.development() {
		if module, err := caddy.GetModule("durward.identities.dev"); err == nil {
			development, _ = module.New().(app.DevelopmentIdentity)
		}
	}
	return app.ModelsWithoutSecrets(kinds, func(u *url.URL) string {
		return app.UpstreamProblem(app.CheckUpstream(u, guard, c.PublicURL))
	}, c.Providers, c.Aliases, development)
}

// unused makes sure that no gateway has the SQLite store open: it would not hear of what is changed.
func (c *gatewayConfig) unused(ctx context.Context, readOnly bool) error {
	if readOnly || c.Store.Driver != "sqlite" {
		return nil
	}
	path, err := c.path()
	if err != nil {
		return err
	}
	store, err := sqlite.OpenExclusively(ctx, path, sqlite.Options{Timeout: toolTimeout})
	if errors.Is(err, sqlite.ErrInUse) {
		return fmt.Errorf("%w, or let it apply the files, with --url and --token", err)
	}
	if err != nil {
		return err
	}
	return store.Close()
}

// toolTimeout bounds a statement of a command that goes over whole tables.
const toolTimeout = 10 * time.Minute

// configFlags names a gateway's configuration.
type configFlags struct{ file, adapter string }

func (f *configFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "config", "", "Configuration of the gateway (default: the Caddyfile of the working directory)")
	cmd.Flags().StringVar(&f.adapter, "adapter", "", "Adapter of the configuration, when its name does not say it")
}

// gatewayConfig holds the parts of a gateway's configuration that commands need.
type gatewayConfig struct {
	Store struct {
		Driver   string `json:"driver"`
		Path     string `json:"path"`
		DSN      string `json:"dsn"`
		MaxConns int    `json:"max_conns"`
	} `json:"store"`
	PublicURL  string   `json:"public_url"` // "" when the site says it
	MasterKey  []string `json:"master_key"`
	Coordinate struct {
		Kind string `json:"kind"`
		DSN  string `json:"dsn"`
		URL  string `json:"url"`
	} `json:"coordinate"`
	Identities      []configuredIdentity `json:"identity"`
	Egress          *settings.Egress     `json:"egress"`
	ApprovalClients []string             `json:"approval_clients"`
	Providers       []settings.Provider  `json:"provider"`
	Aliases         []settings.Alias     `json:"alias"`

	// whole is the complete part as it is written.
	whole any
	// text is the configuration that contains it, file its path, and admin the address of its admin endpoint.
	text        []byte
	file, admin string
}

// configuredIdentity is an identity of the configuration.
type configuredIdentity struct {
	Kind         string `json:"kind"`
	Issuer       string `json:"issuer"`
	Organization string `json:"organization"` // an id or a slug; "" when tokens name it
	LoginClient  string `json:"login_client"`
}

// isFor reports whether the identity is for that organization and no other.
func (i configuredIdentity) isFor(o storage.Organization) bool {
	organization, ok := caller.FixedOrganization(i.Organization)
	return ok && (o.ID == organization || o.Issuer == i.Issuer && o.Slug == organization)
}

// named holds a reference, and its place.
type named struct{ place, reference string }

// references returns the references that are read when the configuration is loaded, in their order.
func (c *gatewayConfig) references() []named { return referencesIn("", c.whole) }

func referencesIn(place string, value any) (found []named) {
	switch value := value.(type) {
	case string:
		if settings.IsReference(value) {
			found = append(found, named{place, value})
		}
	case []any:
		for _, member := range value {
			found = append(found, referencesIn(place, member)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			found = append(found, referencesIn(strings.TrimPrefix(place+"."+name, "."), value[name])...)
		}
	}
	return found
}

// fileOf returns the path of a reference to a file.
func fileOf(reference string) (path string, ok bool) {
	return strings.CutPrefix(strings.TrimSuffix(reference, "}"), "{file.")
}

// load reads the configuration. It provisions nothing: the store is not opened.
func (f *configFlags) load() (*gatewayConfig, error) {
	adapter := f.adapter
	if adapter == "" && f.file != "" && isCaddyfile(f.file) {
		adapter = "caddyfile"
	}
	text, err := loadQuietly(f.file, adapter)
	if err != nil {
		return nil, err
	}
	var config struct {
		Apps struct {
			Durward json.RawMessage `json:"durward"`
		} `json:"apps"`
	}
	if len(text) == 0 {
		return nil, errors.New("there is no Caddyfile in the working directory; say with --config where the gateway's configuration is")
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	if len(config.Apps.Durward) == 0 || string(config.Apps.Durward) == "null" {
		return nil, errors.New("the configuration has no `durward` option: it is no gateway's")
	}
	read := &gatewayConfig{text: text, file: f.file, admin: adminOf(text, f.file, adapter)}
	if err := errors.Join(json.Unmarshal(config.Apps.Durward, read), json.Unmarshal(config.Apps.Durward, &read.whole)); err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return read, nil
}

// development reports whether the development identity provider is configured.
func (c *gatewayConfig) development() bool {
	for _, i := range c.Identities {
		if i.Kind == "dev" {
			return true
		}
	}
	return false
}

// path returns the SQLite store's file.
func (c *gatewayConfig) path() (string, error) {
	path, err := caddy.NewReplacer().ReplaceOrErr(c.Store.Path, true, true)
	if err != nil {
		return "", fmt.Errorf("resolving the path of the store: %w", err)
	}
	return filepath.Abs(path)
}

// directory returns the directory in which the gateway keeps everything outside its store.
func (c *gatewayConfig) directory() (string, error) {
	if c.Store.Driver != "sqlite" {
		return app.LocalDirectory(), nil
	}
	path, err := c.path()
	return filepath.Dir(path), err
}

// masterKeyReferences returns the references to the master keys; in development mode, the one to the generated key.
func (c *gatewayConfig) masterKeyReferences() []string {
	if len(c.MasterKey) > 0 || !c.development() {
		return c.MasterKey
	}
	directory, err := c.directory()
	if err != nil {
		return nil
	}
	return []string{"{file." + filepath.Join(directory, "master.key") + "}"}
}

func readMasterKey(reference string) (seal.MasterKey, error) {
	secret, err := settings.ResolveSecret(reference)
	if err != nil {
		return seal.MasterKey{}, err
	}
	return seal.ParseMasterKey(secret)
}

func (c *gatewayConfig) masterKeys() (masters []seal.MasterKey, err error) {
	for _, reference := range c.masterKeyReferences() {
		master, err := readMasterKey(reference)
		if err != nil {
			return nil, fmt.Errorf("reading master_key %s: %w", reference, err)
		}
		masters = append(masters, master)
	}
	if len(masters) == 0 {
		return nil, errors.New("the configuration has no master_key")
	}
	return masters, nil
}

// keyStore is a store whose keys can be rotated.
type keyStore interface {
	storage.Store
	rekey.Store
}

// open opens the store as the gateway does, but does not create or change its schema, which must be there already.
func (c *gatewayConfig) open(ctx context.Context) (keyStore, error) {
	switch c.Store.Driver {
	case "sqlite":
		path, err := c.path()
		if err != nil {
			return nil, err
		}
		// A normal opening would make the file, and bring an older one up to date.
		there, err := sqlite.OpenReadOnly(ctx, path, sqlite.Options{Timeout: toolTimeout})
		if err != nil {
			return nil, err
		}
		if err := there.Close(); err != nil {
			return nil, err
		}
		return sqlite.Open(ctx, path, sqlite.Options{Timeout: toolTimeout})
	case "postgres":
		dsn, err := settings.ResolveSecret(c.Store.DSN)
		if err != nil {
			return nil, fmt.Errorf("resolving the address of the store: %w", err)
		}
		return postgres.Open(ctx, dsn.Reveal(), postgres.Options{MaxConns: postgres.MinConns, KeepSchema: true, Timeout: time.Minute})
	}
	return nil, fmt.Errorf("the store %q is none that this command knows", cmp.Or(c.Store.Driver, "(none)"))
}

// exists reports whether a path exists.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
