package main

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the packagers register themselves
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

//go:embed files
var packaged embed.FS

// format is a format of packages, with what differs between them.
type format struct {
	name      string
	depends   []string
	zsh       string // where it looks for completions
	copyright string
}

var formats = []format{
	// The scripts need these. base64 is in coreutils, getent in libc-bin, which every Debian has.
	{"deb", []string{"passwd", "ca-certificates"}, "/usr/share/zsh/vendor-completions", "/usr/share/doc/durward/copyright"},
	{"rpm", []string{"shadow-utils", "ca-certificates", "coreutils"}, "/usr/share/zsh/site-functions", "/usr/share/licenses/durward/LICENSE"},
}

// packageOf returns a package, and the name of its file. What it installs is a service that is neither enabled nor started:
// who installs it configures it first.
func (r release) packageOf(f format, b binary, t texts, components []byte) (name string, packed []byte, err error) {
	work, err := os.MkdirTemp("", "package-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(work)
	contents, err := r.contents(f, b, t, components, work)
	if err != nil {
		return "", nil, err
	}
	scripts := make(map[string]string)
	for _, script := range []string{"preinstall", "postinstall", "preremove", "postremove"} {
		if scripts[script], err = stage(work, script, own(script)); err != nil {
			return "", nil, err
		}
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "durward", Arch: b.arch, Platform: b.os, Version: r.version, Section: "net", Priority: "optional",
		Maintainer: "The durward authors <https://github.com/durward-gateway/durward>", License: "Apache-2.0", Homepage: "https://github.com/durward-gateway/durward",
		Description:     "Edge gateway in front of MCP servers and models\nIt gives MCP clients access to servers as the user they act for: single\nsign-on, policies for each tool, human approval, and an audit log.",
		DisableGlobbing: true, MTime: r.time,
		Overridables: nfpm.Overridables{
			Depends: f.depends, Contents: contents, Umask: 0o022,
			Scripts: nfpm.Scripts{PreInstall: scripts["preinstall"], PostInstall: scripts["postinstall"], PreRemove: scripts["preremove"], PostRemove: scripts["postremove"]},
			RPM:     nfpm.RPM{BuildHost: "localhost", Group: "System Environment/Daemons"},
		},
	})
	if err := nfpm.PrepareForPackager(info, f.name); err != nil {
		return "", nil, err
	}
	packager, err := nfpm.Get(f.name)
	if err != nil {
		return "", nil, err
	}
	var file bytes.Buffer
	if err := packager.Package(info, &file); err != nil {
		return "", nil, err
	}
	return packager.ConventionalFileName(info), file.Bytes(), nil
}

// contents lists what a package installs.
func (r release) contents(f format, b binary, t texts, components []byte, work string) (all files.Contents, err error) {
	unit, err := packagedUnit(t.unit)
	if err != nil {
		return nil, err
	}
	add := func(to, kind string, mode fs.FileMode, content []byte) {
		var from string
		if err == nil {
			from, err = stage(work, to, content)
		}
		all = append(all, &files.Content{Source: from, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Mode: mode, Owner: "root", Group: "root", MTime: r.time}})
	}
	directory := func(path, owner string) {
		all = append(all, &files.Content{Destination: path, Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o700, Owner: owner, Group: owner, MTime: r.time}})
	}
	add("/usr/bin/durward", files.TypeFile, 0o755, b.content)
	add("/usr/lib/systemd/system/durward.service", files.TypeFile, 0o644, unit)
	add("/etc/durward/Caddyfile", files.TypeConfigNoReplace, 0o644, own("Caddyfile"))
	directory("/etc/durward/credentials", "root")
	directory("/var/lib/durward", "durward")
	add("/usr/share/doc/durward/edge.caddyfile", files.TypeFile, 0o644, t.sample)
	add("/usr/share/doc/durward/durward.cdx.json", files.TypeFile, 0o644, components)
	add(f.copyright, files.TypeFile, 0o644, t.licence)
	for shell, folder := range map[string]string{"bash": "/usr/share/bash-completion/completions", "fish": "/usr/share/fish/vendor_completions.d", "zsh": f.zsh} {
		add(folder+"/"+completionNames[shell], files.TypeFile, 0o644, t.completions[shell])
	}
	for _, name := range slices.Sorted(maps.Keys(t.pages)) {
		page, problem := packedPage(t.pages[name])
		if problem != nil {
			return nil, problem
		}
		add("/usr/share/man/man8/"+name+".gz", files.TypeFile, 0o644, page)
	}
	return all, err
}

// packagedUnit returns the unit as packages install it: with the package's path, and with the user that the package makes.
func packagedUnit(unit []byte) ([]byte, error) {
	_, text, ok := strings.Cut(string(unit), "\n[Unit]\n")
	if !ok {
		return nil, fmt.Errorf("the unit has no [Unit]")
	}
	text = "[Unit]\n" + text
	for _, change := range []struct{ from, to string }{
		{"/usr/local/bin/durward", "/usr/bin/durward"},
		{"# A user that exists while the service runs, and the two directories that are its own.\nDynamicUser=yes\n", "User=durward\nGroup=durward\n"},
	} {
		if !strings.Contains(text, change.from) {
			return nil, fmt.Errorf("the unit has no %q", change.from)
		}
		text = strings.ReplaceAll(text, change.from, change.to)
	}
	return []byte(text), nil
}

// own returns a file of files/, which is there: it was compiled in.
func own(name string) []byte {
	content, err := packaged.ReadFile("files/" + name)
	if err != nil {
		panic(err)
	}
	return content
}

// stage writes content where nfpm reads it.
func stage(work, name string, content []byte) (string, error) {
	file := filepath.Join(work, strings.ReplaceAll(strings.TrimPrefix(name, "/"), "/", "+"))
	return file, os.WriteFile(file, content, 0o600)
}
