package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// archive returns a platform's archive: everything below one folder, files in the order of their names.
func (r release) archive(b binary, t texts, components []byte) ([]byte, error) {
	entries := []entry{
		{"durward", 0o755, b.content},
		{"durward.cdx.json", 0o644, components},
		{"edge.caddyfile", 0o644, t.sample},
		{"LICENSE", 0o644, t.licence},
	}
	if b.os == "linux" {
		entries = append(entries, entry{"durward.service", 0o644, t.unit})
	}
	for _, shell := range slices.Sorted(maps.Keys(t.completions)) {
		entries = append(entries, entry{"completions/" + completionNames[shell], 0o644, t.completions[shell]})
	}
	for _, page := range slices.Sorted(maps.Keys(t.pages)) {
		entries = append(entries, entry{"man/man8/" + page, 0o644, t.pages[page]})
	}
	var packed bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: r.name(b.platform) + "/" + e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: r.time, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}

// completionNames are the names under which each shell looks for completions of durward.
var completionNames = map[string]string{"bash": "durward", "fish": "durward.fish", "zsh": "_durward"}
