package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// texts holds what is the same on every platform.
type texts struct {
	pages       map[string][]byte // manual pages by file name
	completions map[string][]byte // by shell
	unit        []byte            // systemd's
	sample      []byte            // a Caddyfile to start from
	licence     []byte
}

// shells are those whose completions are packed.
var shells = []string{"bash", "fish", "zsh"}

// texts asks a binary for its manual pages and completions, and reads the rest from the checkout.
func (r release) texts(ctx context.Context, built []platform, work string) (texts, error) {
	var t texts
	host, err := r.host(ctx, built, work)
	if err != nil {
		return t, err
	}
	ask := func(arguments ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, host, arguments...) //nolint:gosec // it was built for this
		command.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.time.Unix(), 10), "HOME="+work, "TZ=UTC")
		return r.output(command)
	}
	directory := filepath.Join(work, "man8")
	if _, err := ask("manpage", "--directory", directory); err != nil {
		return t, err
	}
	files, err := os.ReadDir(directory)
	if err != nil {
		return t, err
	}
	t.pages = make(map[string][]byte)
	for _, file := range files {
		page, err := os.ReadFile(filepath.Join(directory, file.Name()))
		if err != nil {
			return t, err
		}
		if t.pages[file.Name()], err = titled(file.Name(), page); err != nil {
			return t, err
		}
	}
	t.completions = make(map[string][]byte)
	for _, shell := range shells {
		if t.completions[shell], err = ask("completion", shell); err != nil {
			return t, err
		}
	}
	return t, r.read(&t)
}

// read reads what the checkout has.
func (r release) read(t *texts) (err error) {
	for file, to := range map[string]*[]byte{"caddyfile/edge.caddyfile": &t.sample, "deploy/systemd/durward.service": &t.unit, "LICENSE": &t.licence} {
		if *to, err = os.ReadFile(filepath.Join(r.root, file)); err != nil {
			return err
		}
	}
	return nil
}

// titled gives a manual page its own title, and a name: Caddy calls every page Caddy, and says nothing about the first.
func titled(file string, page []byte) ([]byte, error) {
	const title = `.TH "Caddy" "8"`
	if !bytes.Contains(page, []byte(title)) {
		return nil, fmt.Errorf("the manual page %s has no title %s", file, title)
	}
	own := strings.ToUpper(strings.TrimSuffix(file, ".8"))
	page = bytes.Replace(page, []byte(title), []byte(`.TH "`+own+`" "8"`), 1)
	return unnamed.ReplaceAll(page, []byte(".SH NAME\ndurward - an edge gateway in front of MCP servers and models\n")), nil
}

// unnamed matches the first page's name, behind which nothing is said.
var unnamed = regexp.MustCompile(`(?m)^\.SH NAME\ndurward \\?-[ \t]*\n`)

// packedPage compresses a manual page, as packages have them.
func packedPage(page []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(page); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
