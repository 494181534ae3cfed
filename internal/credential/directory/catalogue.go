package directory

import (
	"bytes"
	_ "embed" // the catalogue
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

//go:embed catalogue.json
var catalogue []byte

// namespace is the namespace of the ids of read-only entries: an entry has the same id on every node and after every
// start.
var namespace = uuid.MustParse("9d3f4c1e-6f0a-5f5e-9a51-0d7c5c0c7a11")

// Catalogue returns the entries that ship with the gateway: public MCP servers as their makers document them.
func Catalogue() ([]storage.DirectoryEntry, error) {
	records, err := ParseRecords(catalogue)
	if err != nil {
		return nil, fmt.Errorf("reading the shipped catalogue: %w", err)
	}
	return ReadOnly(records, storage.SourceCatalogue, func(*url.URL) error { return nil })
}

// ParseRecords reads a JSON array of records. In an operator's file, members that are unknown, given twice or written
// in another case are mistakes and are refused.
func ParseRecords(text []byte) ([]Record, error) {
	list, err := strictjson.Parse(text, strictjson.Limits{})
	if err != nil {
		return nil, fmt.Errorf("reading directory records: %w", err)
	}
	if list.Kind() != strictjson.Array {
		return nil, errors.New("reading directory records: they are not in a list")
	}
	for i, record := range list.Elems() {
		if err := checkCase(record); err != nil {
			return nil, fmt.Errorf("reading directory record %d: %w", i+1, err)
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var records []Record
	if err := decoder.Decode(&records); err != nil {
		return nil, fmt.Errorf("reading directory records: %w", err)
	}
	return records, nil
}

// checkCase refuses members that encoding/json would accept in another case. The names inside `meta` and
// `authorization_params` are not ours, and are not checked.
func checkCase(record strictjson.Value) error {
	if record.Kind() != strictjson.Object {
		return errors.New("it is not an object")
	}
	for _, member := range record.Members() {
		if strings.Trim(member.Name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("unknown member %q", member.Name)
		}
		if member.Value.Kind() == strictjson.Object && member.Name != "meta" && member.Name != "authorization_params" {
			if err := checkCase(member.Value); err != nil {
				return fmt.Errorf("%s: %w", member.Name, err)
			}
		}
	}
	return nil
}

// ReadOnly makes the entries of a read-only source, and refuses the first invalid record.
func ReadOnly(records []Record, source storage.Source, checkURL func(*url.URL) error) ([]storage.DirectoryEntry, error) {
	entries := make([]storage.DirectoryEntry, 0, len(records))
	seen := make(map[string]bool)
	for _, record := range records {
		e := record.Entry(source)
		if problems := Check(e, checkURL); len(problems) > 0 {
			return nil, fmt.Errorf("directory entry %q: %v: %s", record.Name, problems[0].Loc, problems[0].Msg)
		}
		if seen[e.Slug] {
			return nil, fmt.Errorf("directory entry %q: slug %q is taken by another entry", record.Name, e.Slug)
		}
		seen[e.Slug] = true
		e.ID = ReadOnlyID(source, e.Slug)
		entries = append(entries, e)
	}
	return entries, nil
}

// ReadOnlyID returns the id of a read-only entry.
func ReadOnlyID(source storage.Source, slug string) string {
	return uuid.NewSHA1(namespace, []byte(string(source)+"/"+slug)).String()
}
