package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// components returns the list of a binary's components, in the format of CycloneDX. It has the modules that the linker
// recorded in the binary, Go's standard library, and the console's libraries.
func (r release) components(b binary) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(b.content))
	if err != nil {
		return nil, fmt.Errorf("reading what was linked: %w", err)
	}
	sum := sha256.Sum256(b.content)
	gateway := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: "durward", Version: r.version,
		PackageURL: "pkg:golang/github.com/durward-gateway/durward@" + r.version + "?type=module&goos=" + b.os + "&goarch=" + b.arch,
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Properties: &[]cyclonedx.Property{{Name: "durward:commit", Value: r.commit}, {Name: "durward:go", Value: info.GoVersion}},
	}
	gateway.BOMRef = gateway.PackageURL
	standard, _, _ := strings.Cut(strings.TrimPrefix(info.GoVersion, "go"), " ")
	all := []cyclonedx.Component{library("std", standard, "pkg:golang/std@"+standard, "")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		all = append(all, library(module.Path, module.Version, "pkg:golang/"+module.Path+"@"+url.PathEscape(module.Version)+"?type=module", moduleHash(module)))
	}
	console, err := r.consoleLibraries()
	if err != nil {
		return nil, err
	}
	all = append(all, console...)
	refs := make([]string, 0, len(all))
	for _, c := range all {
		refs = append(refs, c.BOMRef)
	}
	list := cyclonedx.NewBOM()
	// The serial number is unique to the binary, and the same each time: RFC 9562 calls such a number version 8.
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	list.SerialNumber = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	list.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &gateway}
	list.Components = &all
	list.Dependencies = &[]cyclonedx.Dependency{{Ref: gateway.BOMRef, Dependencies: &refs}}
	var text bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	// Not the newest version of the format: scanners read this one.
	if err := encoder.EncodeVersion(list, cyclonedx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// library describes a component that is linked in. Its reference is its package URL.
func library(name, version, purl, sha256 string) cyclonedx.Component {
	c := cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl}
	if sha256 != "" {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: sha256}}
	}
	return c
}

// moduleHash returns the SHA-256 hash that go.sum has of a module's files, in hex.
func moduleHash(module *debug.Module) string {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil {
		return ""
	}
	return hex.EncodeToString(sum)
}

// consolePackage matches a row of the table of the console's libraries: directory, package and version, licence.
var consolePackage = regexp.MustCompile(`(?m)^\| [a-z-]+ \| ([@a-z/-]+) ([0-9.]+) \| ([A-Za-z0-9.-]+) \|$`)

// consoleLibraries lists the libraries that the console's script was made with.
func (r release) consoleLibraries() (all []cyclonedx.Component, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, "modules/console/third-party/README.md"))
	if err != nil {
		return nil, err
	}
	for _, row := range consolePackage.FindAllStringSubmatch(string(text), -1) {
		c := library(row[1], row[2], "pkg:npm/"+strings.ReplaceAll(row[1], "@", "%40")+"@"+row[2], "")
		c.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: row[3]}}}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New("the table of the console's libraries has no row that can be read")
	}
	return all, nil
}
