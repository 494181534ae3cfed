package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/ops/diskspace"
	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/postgres/counters"
	"github.com/durward-gateway/durward/storage/sqlite"
)

// lookTimeout bounds each request to something that may not answer. maxMetadata bounds an issuer's answer.
const (
	lookTimeout = 15 * time.Second
	maxMetadata = 1 << 20
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "doctor",
		Usage: "[--config <file>] [--format text|json]",
		Short: "Looks for what is wrong with a gateway's surroundings, and says how to mend it",
		Long: `
Loads the configuration by the code of a start, and says what a start would; looks at the
addresses to listen on, the master keys, the modes of files, the store and its
schema, the database's settings and its user, a pooler in between, clocks, identity
providers, policies that ask for approval where nobody can give it, the space on the
disk and what the audit log has not stored yet. It changes
nothing and may run beside a gateway: as the gateway's user and with its environment.

Each finding has a severity (error, warning, note), what it means, and how to mend it.
The exit code is 1 when there is an error.

durward doctor tokens shows which access tokens a running gateway refused, and why.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o doctorOptions
			o.config.add(cmd)
			cmd.Flags().StringVar(&o.format, "format", "text", "text or json")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) }
			cmd.AddCommand(new(doctorTokens).command())
		},
	})
}

type doctorOptions struct {
	config configFlags
	format string
}

func (o doctorOptions) run(ctx context.Context, out io.Writer) error {
	if o.format != "text" && o.format != "json" {
		return fmt.Errorf("--format %q is neither text nor json", o.format)
	}
	var r doctor.Report
	config, err := o.config.load()
	if err != nil {
		r.Add("configuration", refusedStart(err, o.config.file))
	} else {
		examineStart(ctx, config, &r)
		examine(ctx, config, &r)
	}
	write := r.WriteText
	if o.format == "json" {
		write = r.WriteJSON
	}
	if err := write(out); err != nil {
		return err
	}
	if r.Failed() {
		return errors.New("the gateway cannot work as it is")
	}
	return nil
}

// examine examines everything that a configuration names.
func examine(ctx context.Context, config *gatewayConfig, r *doctor.Report) {
	var keys []storage.DataKey
	switch config.Store.Driver {
	case "sqlite":
		keys = examineSQLite(ctx, config, r)
	case "postgres":
		keys = examinePostgres(ctx, config, r)
	default:
		r.Add("store", doctor.Finding{Severity: doctor.Error, Found: "no store is configured, or none that this command knows", Mend: "Add `store sqlite PATH` or `store postgres REF` to the durward option."})
	}
	examineMasterKeys(config, keys, r)
	examineReferences(config, r)
	examineCounters(ctx, config, r)
	examineDisk(config, r)
	guard, err := config.Egress.Guard(config.development())
	if err != nil {
		return // the start has reported it
	}
	client := guard.FetchClient(lookTimeout, maxMetadata)
	for _, i := range config.Identities {
		if i.Kind == "oidc" {
			r.Add("identity provider "+i.Issuer, doctor.Identity(lookAtIssuer(ctx, client, i.Issuer))...)
		}
	}
}

func examineSQLite(ctx context.Context, config *gatewayConfig, r *doctor.Report) (keys []storage.DataKey) {
	path, err := config.path()
	if _, missing := os.Stat(path); err == nil && errors.Is(missing, fs.ErrNotExist) {
		r.Add("store", doctor.Finding{Severity: doctor.Note, Found: path + " is not there: no gateway has run on it", Mend: "The first start makes it, when its directory may be written to."})
		return nil
	}
	if err == nil {
		var s *sqlite.Store
		if s, err = sqlite.OpenReadOnly(ctx, path, sqlite.Options{Timeout: lookTimeout, Momentary: true}); err == nil {
			if keys, err = s.DataKeys(ctx); err == nil {
				err = examineRecords(ctx, config, s, r)
			}
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		mend := "Run this as the gateway's user. When the file is damaged, restore a backup."
		if errors.Is(err, sqlite.ErrSchema) {
			mend = "A gateway brings an older schema up to date when it starts. For a newer one, use the durward that made it."
		}
		r.Add("store", doctor.Finding{Severity: doctor.Error, Found: err.Error(), Mend: mend})
		return nil
	}
	r.Add("store")
	private := append(files("the database", path, path+"-wal", path+"-shm"), files("the database's directory", filepath.Dir(path))...)
	r.Add("modes of the store's files", doctor.Private(private...)...)
	return keys
}

func examinePostgres(ctx context.Context, config *gatewayConfig, r *doctor.Report) (keys []storage.DataKey) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	dsn, err := settings.ResolveSecret(config.Store.DSN)
	var facts postgres.Facts
	if err == nil {
		facts, err = postgres.Inspect(ctx, dsn.Reveal(), time.Now)
	}
	if err != nil {
		r.Add("store", doctor.Finding{Severity: doctor.Error, Found: err.Error(), Mend: "Check the reference, the address, the password, pg_hba.conf and the firewall."})
		return nil
	}
	conns := cmp.Or(config.Store.MaxConns, postgres.DefaultMaxConns)
	if k := config.Coordinate; k.DSN == "" && (k.Kind == "" || k.Kind == "postgres") {
		conns += counters.MaxConns
	}
	r.Add("database", doctor.Database(facts, conns)...)
	r.Add("the database's clock", doctor.Clock("the database", facts.Now, time.Now(), facts.Trip, 0)...)
	if facts.SchemaVersion < facts.KnownVersion || facts.Arriving {
		return nil // there is nothing to open yet
	}
	store, err := config.open(ctx)
	if err == nil {
		if keys, err = store.DataKeys(ctx); err == nil {
			err = examineRecords(ctx, config, store, r)
		}
		err = errors.Join(err, store.Close())
	}
	if err != nil {
		r.Add("store", doctor.Finding{Severity: doctor.Error, Found: err.Error(), Mend: "The database answers, but the store cannot be used: check max_connections and the user's rights."})
		return nil
	}
	r.Add("store")
	return keys
}

// files describes those of paths that exist.
func files(what string, paths ...string) (found []doctor.File) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			others, readOnly := heldBy(path, info)
			found = append(found, doctor.File{Path: path, Mode: info.Mode(), What: what, Given: others, Fixed: readOnly})
		}
	}
	return found
}

func examineMasterKeys(config *gatewayConfig, stored []storage.DataKey, r *doctor.Report) {
	var given []doctor.MasterKey
	var paths []string
	for _, reference := range config.masterKeyReferences() {
		key, err := readMasterKey(reference)
		given = append(given, doctor.MasterKey{Reference: reference, ID: key.ID(), Err: err})
		if path, ok := fileOf(reference); ok {
			paths = append(paths, path)
		}
	}
	var wrapping []string
	for _, k := range stored {
		wrapping = append(wrapping, k.MasterKeyID)
	}
	r.Add("master key", doctor.MasterKeys(given, wrapping)...)
	if len(paths) > 0 {
		r.Add("modes of the master keys' files", doctor.Private(files("a master key", paths...)...)...)
	}
}

// examineReferences reads the references of the configuration, except those that other checks read, and checks the
// modes of their files.
func examineReferences(config *gatewayConfig, r *doctor.Report) {
	var findings []doctor.Finding
	var secrets []string
	for _, n := range config.references() {
		if n.place == "master_key" {
			continue
		}
		if _, err := settings.ResolveSecret(n.reference); err != nil && n.place != "store.dsn" {
			findings = append(findings, doctor.Finding{Severity: doctor.Error, Found: fmt.Sprintf("%s: %v: the gateway does not start", n.place, err),
				Mend: "Put it where the configuration says, where the gateway's user can read it, and run this as that user with its environment."})
		}
		if path, ok := fileOf(n.reference); ok && n.place != "prices" && !strings.HasPrefix(n.place, "directory") {
			secrets = append(secrets, path)
		}
	}
	r.Add("what the configuration refers to", findings...)
	if len(secrets) > 0 {
		slices.Sort(secrets)
		r.Add("modes of the secrets' files", doctor.Private(files("a secret", slices.Compact(secrets)...)...)...)
	}
}

// examineCounters asks the server on which nodes count together, when it is not the store's.
func examineCounters(ctx context.Context, config *gatewayConfig, r *doctor.Report) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	reference := cmp.Or(config.Coordinate.URL, config.Coordinate.DSN)
	address, err := settings.ResolveSecret(reference)
	if reference == "" || err != nil {
		return // it is the store's, or the check of references has reported it
	}
	switch config.Coordinate.Kind {
	case "valkey":
		err = valkey.Ping(ctx, address.Reveal())
	case "postgres":
		var facts postgres.Facts
		if facts, err = postgres.Inspect(ctx, address.Reveal(), time.Now); err == nil {
			r.Add("the database of the rate limits", doctor.Counters(facts, counters.MaxConns)...)
			return
		}
	default:
		return
	}
	if err != nil {
		r.Add("rate limits", doctor.Finding{Severity: doctor.Error, Found: fmt.Sprintf("where nodes count together cannot be reached: %v", err),
			Mend: "Check the address, the password and the firewall. Until then each node does what `limits on_store_failure` says."})
		return
	}
	r.Add("rate limits")
}

func examineDisk(config *gatewayConfig, r *doctor.Report) {
	directory, err := config.directory()
	if err != nil {
		return // the store's check has reported it
	}
	there := directory
	for !exists(there) && filepath.Dir(there) != there {
		there = filepath.Dir(there)
	}
	free, size, err := diskspace.Of(there)
	if err != nil {
		r.Add("disk", doctor.Finding{Severity: doctor.Warning, Found: fmt.Sprintf("how much space is left where %s is cannot be told: %v", directory, err), Mend: "Look with df."})
	} else {
		r.Add("disk", doctor.Disk(directory, free, size)...)
	}
	journals := filepath.Join(directory, "audit")
	segments, bytes, err := backlog(journals)
	if err != nil {
		r.Add("audit log", doctor.Finding{Severity: doctor.Warning, Found: fmt.Sprintf("the journals cannot be read: %v", err), Mend: "Run this as the gateway's user."})
		return
	}
	r.Add("audit log", doctor.Backlog(journals, segments, bytes)...)
}

// backlog counts the segments of journals that have ended and are still there: stored segments are removed, except
// for the last one of each node.
func backlog(journals string) (segments int, bytes int64, err error) {
	nodes, err := os.ReadDir(journals)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	for _, node := range nodes {
		if !node.IsDir() {
			continue
		}
		entries, err := os.ReadDir(filepath.Join(journals, node.Name())) // sorted: the last one is written to
		if err != nil {
			return 0, 0, err
		}
		var sizes []int64
		for _, e := range entries {
			if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".ndjson") {
				sizes = append(sizes, info.Size())
			}
		}
		for _, size := range sizes[:max(len(sizes)-1, 0)] {
			segments++
			bytes += size
		}
	}
	return segments, bytes, nil
}

// lookAtIssuer reads an issuer's metadata and keys, over the connections that the gateway may use.
func lookAtIssuer(ctx context.Context, client *http.Client, issuer string) doctor.Issuer {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	seen := doctor.Issuer{Name: issuer}
	var metadata struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	began := time.Now()
	header, err := fetchJSON(ctx, client, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", &metadata)
	if err != nil {
		seen.Err, seen.Advice = fmt.Errorf("its metadata cannot be read: %w", netguard.Cause(err)), netguard.Advice(err)
		return seen
	}
	seen.Says, seen.At, seen.Trip = metadata.Issuer, time.Now(), time.Since(began)
	seen.Date, _ = http.ParseTime(header.Get("Date"))
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if _, err := fetchJSON(ctx, client, metadata.JWKS, &set); err != nil {
		seen.Err, seen.Advice = fmt.Errorf("its keys cannot be read: %w", netguard.Cause(err)), netguard.Advice(err)
		return seen
	}
	seen.Keys = len(set.Keys)
	return seen
}

func fetchJSON(ctx context.Context, client *http.Client, url string, into any) (http.Header, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	w, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer w.Body.Close()
	if w.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d", url, w.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(w.Body, maxMetadata))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return nil, fmt.Errorf("%s does not answer with JSON: %w", url, err)
	}
	return w.Header, nil
}
