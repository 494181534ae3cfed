package settings

import (
	"fmt"

	"github.com/durward-gateway/durward/internal/credential/directory"
)

// Directory adds templates of servers to the catalogue that ships with the gateway. They are read-only in the API.
type Directory struct {
	// References to files, `{file./path}`, each holding a JSON array of entries. Default: none.
	Files []string `json:"files,omitempty"`
	// Entries that are written out here. Default: none.
	Entries []directory.Record `json:"entries,omitempty"`
}

// Records reads the templates. d may be nil.
func (d *Directory) Records() ([]directory.Record, error) {
	if d == nil {
		return nil, nil
	}
	records := append([]directory.Record(nil), d.Entries...)
	for _, reference := range d.Files {
		if !IsReference(reference) {
			return nil, fmt.Errorf("directory: %q is not a reference such as {file./path}", reference)
		}
		content, err := Resolve(reference)
		if err != nil {
			return nil, fmt.Errorf("directory: %w", err)
		}
		more, err := directory.ParseRecords([]byte(content))
		if err != nil {
			return nil, fmt.Errorf("directory %s: %w", reference, err)
		}
		records = append(records, more...)
	}
	for i := range records {
		if !IsReference(records[i].TrustedCA) {
			continue
		}
		content, err := Resolve(records[i].TrustedCA)
		if err != nil {
			return nil, fmt.Errorf("directory entry %q: trusted_ca: %w", records[i].Name, err)
		}
		records[i].TrustedCA = content
	}
	return records, nil
}
