package commands

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/sqlite"
)

// exitTampered is the exit code of a verification that found something. Code 1 means that the verification could not
// be made.
const exitTampered = 2

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "audit",
		Usage: "verify|export [--data <directory>] [--database <reference>]",
		Short: "Verifies and exports the audit log",
		CobraFunc: func(cmd *cobra.Command) {
			cmd.AddCommand(auditVerifyCommand(), auditExportCommand())
		},
	})
}

func auditVerifyCommand() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "verify [--data <directory>] [--database <reference>] [--master-key <reference>...] [--public-key <key>...] [--store-only]",
		Short: "Finds whatever was edited, removed, moved or put back in the audit log",
		Long: `
Holds the journal and the store against each other and against the signed
checkpoints. It changes nothing and may run beside a gateway.

With --data, journals are in that directory: one that has not ended, and is not there,
is a finding. A copy of the database file alone is verified with --store-only.

Signatures are checked with keys that are derived from the master key: give it as
the configuration does, {env.NAME} or {file./path}; in development mode it is found in
the data directory. An auditor who must not hold the master key uses the public keys
that a verification with the master key prints.

Exit codes: 0, the log is whole; 1, it could not be verified; 2, something was found.

What the last checkpoint does not cover yet, up to 10 seconds, can be cut off without
a trace by whoever can write to the disk, and whoever can write to both disk and store
can put both back to how they were at an earlier checkpoint. Who keeps the last line of
a verification elsewhere (number and hash of the last checkpoint) can tell later that
nothing up to there was taken away.
`,
		Args: cobra.NoArgs,
	}
	o.flags(cmd)
	cmd.Flags().StringArrayVar(&o.masterKeys, "master-key", nil, "Reference to the master key, {env.NAME} or {file./path}; may be repeated")
	cmd.Flags().StringArrayVar(&o.publicKeys, "public-key", nil, "Public key that checks signatures, as a verification prints it; may be repeated")
	cmd.Flags().BoolVar(&o.storeOnly, "store-only", false, "Verify the store without journals, such as a copy of the database file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := o.verify(cmd.Context(), cmd.OutOrStdout())
		if err != nil || found == 0 {
			return err
		}
		return tampered(cmd, found)
	}
	return cmd
}

// tampered ends a verification that found something, with its exit code and an error like those of the other
// commands: Caddy's own way to an exit code writes errors as lines of its log.
func tampered(cmd *cobra.Command, found int) error {
	cmd.PrintErrln("Error: the audit log is not what was written:", counted(found, "finding"))
	cmd.SilenceErrors = true
	return caddycmd.WrapCommandFuncForCobra(func(caddycmd.Flags) (int, error) { return exitTampered, nil })(cmd, nil)
}

// counted returns a number of things.
func counted[N int | int64](n N, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func auditExportCommand() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "export [--data <directory>] [--database <reference>] [--organization <id>] [--from <time>] [--to <time>]",
		Short: "Writes the audit log as NDJSON, with what chains it",
		Long: `
Writes one record on each line: organization, node, segment, sequence, the hashes, and
the entry. Records that a running gateway has not brought to the store yet come last.
It changes nothing.
`,
		Args: cobra.NoArgs,
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&o.organization, "organization", "*", "Id of the organization; * is all of them, and the gateway's own events")
	cmd.Flags().StringVar(&o.from, "from", "", "The first time, such as 2026-01-31T12:00:00Z (default: the beginning)")
	cmd.Flags().StringVar(&o.to, "to", "", "The time behind the last one (default: now)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.export(cmd.Context(), cmd.OutOrStdout()) }
	return cmd
}

type auditOptions struct {
	data         string
	database     string
	masterKeys   []string
	publicKeys   []string
	storeOnly    bool
	organization string
	from, to     string
}

func (o *auditOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.data, "data", "", "Data directory of the gateway, or the database file in it (default "+defaultData+", with --database where the gateway keeps its journals)")
	cmd.Flags().StringVar(&o.database, "database", "", "Reference to the address of a PostgreSQL database, {env.NAME} or {file./path}; journals are those of this machine's node")
}

// These are the data directory and the name of the store's file in shipped configurations.
const (
	defaultData  = "./data"
	databaseFile = "durward.db"
)

// file returns the database file that --data names.
func (o *auditOptions) file() string {
	data := cmp.Or(o.data, defaultData)
	if info, err := os.Stat(data); err == nil && !info.IsDir() {
		return data
	}
	return filepath.Join(data, databaseFile)
}

// place returns the name of the store, for people.
func (o *auditOptions) place() string { return cmp.Or(o.database, o.file()) }

// directory returns the directory in which the gateway keeps everything outside its store.
func (o *auditOptions) directory() string {
	if o.database != "" {
		return cmp.Or(o.data, app.LocalDirectory())
	}
	return filepath.Dir(o.file())
}

// open opens the store for reading, and returns the place of the journals.
func (o *auditOptions) open(ctx context.Context) (store storage.Store, journals string, err error) {
	journals = filepath.Join(o.directory(), "audit")
	if o.database != "" {
		dsn, err := settings.ResolveSecret(o.database)
		if err != nil {
			return nil, "", fmt.Errorf("resolving --database: %w", err)
		}
		store, err := postgres.Open(ctx, dsn.Reveal(), postgres.Options{MaxConns: postgres.MinConns, KeepSchema: true, Timeout: time.Minute})
		return store, journals, err
	}
	store, err = sqlite.OpenReadOnly(ctx, o.file(), sqlite.Options{Timeout: time.Minute})
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w; when the database has another name, give its path to --data", err)
	}
	return store, journals, err
}

// keys returns the keys that check signatures, and those for MACs when the master key is given.
func (o *auditOptions) keys(ctx context.Context, store storage.DataKeys) (public seal.PublicKeys, macs storage.AuditMACs, err error) {
	if len(o.publicKeys) > 0 {
		public, err = parsePublicKeys(o.publicKeys)
		return public, nil, err
	}
	ring, err := o.keyring(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	return ring.Signer(record.SigningPurpose).Public(), ring.MAC(record.MACPurpose), nil
}

// keyring opens the keyring with the master keys.
func (o *auditOptions) keyring(ctx context.Context, store storage.DataKeys) (*seal.Keyring, error) {
	references := o.masterKeys
	if own := filepath.Join(o.directory(), "master.key"); len(references) == 0 {
		if _, err := os.Stat(own); err != nil {
			return nil, errors.New("say with --master-key which master key the gateway has, such as '{file./run/secrets/durward_key}', or give --public-key")
		}
		references = []string{"{file." + own + "}"}
	}
	var masters []seal.MasterKey
	for _, reference := range references {
		secret, err := settings.ResolveSecret(reference)
		if err != nil {
			return nil, fmt.Errorf("resolving --master-key: %w", err)
		}
		master, err := seal.ParseMasterKey(secret)
		if err != nil {
			return nil, fmt.Errorf("reading --master-key %s: %w", reference, err)
		}
		masters = append(masters, master)
	}
	stored, err := store.DataKeys(ctx)
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		return nil, errors.New("the store has no data keys: no gateway has run on it")
	}
	return seal.OpenKeyring(ctx, masters, store, time.Now)
}

func parsePublicKeys(texts []string) (seal.PublicKeys, error) {
	keys := make(seal.PublicKeys)
	for _, text := range texts {
		number, encoded, _ := strings.Cut(text, ":")
		version, err := strconv.ParseUint(number, 10, 32)
		key, decodeErr := base64.StdEncoding.DecodeString(encoded)
		if err != nil || decodeErr != nil || len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("--public-key %q is not a number, a colon and 32 bytes in base64", text)
		}
		keys[uint32(version)] = key
	}
	return keys, nil
}

// verify writes its findings, and returns their number.
func (o *auditOptions) verify(ctx context.Context, out io.Writer) (found int, err error) {
	store, journals, err := o.open(ctx)
	if err != nil {
		return 0, err
	}
	defer store.Close()
	keys, macs, err := o.keys(ctx, store)
	if err != nil {
		return 0, err
	}
	where := verify.Journals{Dir: journals, All: o.database == ""} // a process that shares a file shares its directory
	if o.storeOnly {
		where = verify.Journals{}
	}
	report, err := verify.Log(ctx, where, store, verify.Keys{Signatures: keys, MACs: macs})
	if err != nil {
		return 0, err
	}
	for _, f := range report.Findings {
		fmt.Fprintln(out, "FOUND", f)
	}
	for _, note := range report.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	fmt.Fprintf(out, "%s, %s, %s in the store, %s\n",
		counted(report.Records, "record"), counted(report.Segments, "segment"), counted(report.Chunks, "chunk"), counted(report.Checkpoints, "checkpoint"))
	for _, version := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(out, "public key %d:%s\n", version, base64.StdEncoding.EncodeToString(keys[version]))
	}
	for _, a := range report.Anchors {
		fmt.Fprintf(out, "node %s: checkpoint %d of %s, %s\n", a.Node, a.Number, a.Time.Format(time.RFC3339), a.Hash)
	}
	for _, line := range standing(&report) {
		fmt.Fprintln(out, line)
	}
	if len(report.Findings) == 0 {
		fmt.Fprintln(out, "the audit log is whole")
	}
	return len(report.Findings), nil
}

// standing describes the evidence for the records, and the changes that an attacker can have made without a trace.
func standing(report *verify.Report) []string {
	s := report.Standing
	var lines []string
	switch since := s.Since.UTC().Format(time.RFC3339); {
	case s.Sealed == 0:
		lines = append(lines, "MACs: no record has one")
	case s.Checked:
		lines = append(lines, fmt.Sprintf("MACs: stand from %s on, over %s", since, counted(s.Sealed, "record")))
	default:
		lines = append(lines, fmt.Sprintf("MACs: from %s on, over %s, not checked: that takes the master key", since, counted(s.Sealed, "record")))
	}
	forge := ""
	if s.Sealed > 0 && !s.Checked {
		forge = "records forged behind the last checkpoint; "
	}
	if s.Unproven > 0 {
		forge += fmt.Sprintf("%s without a MAC or checkpoint added; ", counted(s.Unproven, "record"))
	}
	return append(lines,
		"not shown, who could write the database alone: "+forge+fmt.Sprintf("what no checkpoint covers cut off, now behind %s of the store's own", counted(s.Open, "record")),
		"not shown, who could write the disk alone: "+forge+"what is not in the store yet cut off, or its journals removed",
		"not shown, who could write both: "+forge+"both put back to an earlier state; hold the last checkpoints against ones that were kept elsewhere")
}

func (o *auditOptions) export(ctx context.Context, out io.Writer) error {
	from, to := time.Unix(0, 0), time.Now().Add(time.Second)
	for _, bound := range []struct {
		flag, text string
		to         *time.Time
	}{{"from", o.from, &from}, {"to", o.to, &to}} {
		if bound.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, bound.text)
		if err != nil {
			return fmt.Errorf("--%s %q is not a time such as 2026-01-31T12:00:00Z", bound.flag, bound.text)
		}
		*bound.to = at
	}
	store, journals, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	buffered := bufio.NewWriterSize(out, 64<<10)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	if err := query.Everything(ctx, journals, store, o.organization, from, to, func(r *storage.AuditRecord) error {
		return encoder.Encode(format.Export(r))
	}); err != nil {
		return fmt.Errorf("exporting the audit log: %w", err)
	}
	return buffered.Flush()
}
