// Command build makes the console's assets from its sources: a script, a small one for the colours, and a style sheet, named after the hash of their
// content and compressed, and the page that loads them. It is a module of its own, so that nothing of it is linked into the
// gateway. Run it as `go run -C modules/console/build .`, and commit what it makes.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	to := flag.String("to", "../assets", "the directory of the assets, which is emptied")
	flag.Parse()
	if err := build("..", *to); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

// thirdParty lists the libraries, which are in the repository as their authors published them.
var thirdParty = map[string]string{
	"preact":               "preact/dist/preact.mjs",
	"preact/hooks":         "preact/hooks/dist/hooks.mjs",
	"preact/jsx-runtime":   "preact/jsx-runtime/dist/jsxRuntime.mjs",
	"@preact/signals":      "signals/dist/signals.mjs",
	"@preact/signals-core": "signals-core/dist/signals-core.mjs",
}

// build writes the assets of the console at root.
func build(root, to string) error {
	script, err := bundle(root, "src/main.tsx")
	if err != nil {
		return err
	}
	theme, err := bundle(root, "src/theme.ts")
	if err != nil {
		return err
	}
	style, err := styleSheet(root)
	if err != nil {
		return err
	}
	licences, err := licences(root)
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, "src/index.html"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	text := string(page)
	for _, asset := range []struct {
		name, kind string
		content    []byte
	}{{"console", "js", script}, {"theme", "js", theme}, {"console", "css", style}, {"licences", "txt", licences}} {
		sum := sha256.Sum256(asset.content)
		name := asset.name + "." + hex.EncodeToString(sum[:6]) + "." + asset.kind
		packed, err := pack(asset.content)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name+".gz"), packed, 0o644); err != nil { //nolint:gosec // everybody may read it
			return err
		}
		text = strings.ReplaceAll(text, "{{"+asset.name+"."+asset.kind+"}}", "/console/assets/"+name)
	}
	return os.WriteFile(filepath.Join(to, "index.html"), []byte(text), 0o644) //nolint:gosec // as above
}

// bundle makes one script of a source and of all that it imports.
func bundle(root, entry string) ([]byte, error) {
	libraries, err := filepath.Abs(filepath.Join(root, "third-party"))
	if err != nil {
		return nil, err
	}
	return first(api.Build(api.BuildOptions{
		EntryPoints: []string{filepath.Join(root, entry)}, Bundle: true, Write: false, Outdir: "out",
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, LegalComments: api.LegalCommentsNone,
		Format: api.FormatIIFE, Target: api.ES2022, Charset: api.CharsetUTF8, JSX: api.JSXAutomatic, JSXImportSource: "preact",
		TsconfigRaw: `{}`,
		Plugins: []api.Plugin{{Name: "third-party", Setup: func(b api.PluginBuild) {
			b.OnResolve(api.OnResolveOptions{Filter: `^@?preact`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				path, ok := thirdParty[a.Path]
				if !ok {
					return api.OnResolveResult{}, fmt.Errorf("%s is not in third-party", a.Path)
				}
				return api.OnResolveResult{Path: filepath.Join(libraries, path), SideEffects: api.SideEffectsFalse}, nil
			})
		}}},
	}))
}

// styleSheet makes the style sheet. Its colours are those of the gateway's other pages.
func styleSheet(root string) ([]byte, error) {
	shared, err := os.ReadFile(filepath.Join(root, "../../internal/api/webpage/style.css"))
	if err != nil {
		return nil, err
	}
	colours, err := schemed(string(shared))
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(root, "src/style.css"))
	if err != nil {
		return nil, err
	}
	result := api.Transform(colours+"\n"+string(own), api.TransformOptions{
		Loader: api.LoaderCSS, MinifyWhitespace: true, MinifySyntax: true, Charset: api.CharsetUTF8, Target: api.ES2022,
	})
	if err := failed(result.Errors, result.Warnings); err != nil {
		return nil, err
	}
	return result.Code, nil
}

// declaration matches a colour of the pages' style sheet.
var declaration = regexp.MustCompile(`(--[a-z-]+): (#[0-9a-f]{6});`)

// schemed returns the colours with which the pages' style sheet begins, as those of one scheme or the other: the reader of the
// console may choose. The pages have no script that could remember a choice, and ask the browser.
func schemed(shared string) (string, error) {
	colours, _, ok := strings.Cut(shared, "\n* {")
	light, dark, split := strings.Cut(colours, "@media (prefers-color-scheme: dark)")
	if !ok || !split {
		return "", errors.New("the pages' style sheet does not begin with its colours, light and dark")
	}
	inDark := make(map[string]string)
	for _, d := range declaration.FindAllStringSubmatch(dark, -1) {
		inDark[d[1]] = d[2]
	}
	var out strings.Builder
	out.WriteString(":root { color-scheme: light dark;")
	for _, d := range declaration.FindAllStringSubmatch(light, -1) {
		if inDark[d[1]] == "" {
			return "", fmt.Errorf("%s has no dark colour", d[1])
		}
		fmt.Fprintf(&out, " %s: light-dark(%s, %s);", d[1], d[2], inDark[d[1]])
	}
	out.WriteString(" }\n")
	return out.String(), nil
}

// licences joins the licences of the libraries.
func licences(root string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(root, "third-party/*/LICENSE"))
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "%s\n\n%s\n", filepath.Base(filepath.Dir(file)), text)
	}
	return all.Bytes(), nil
}

func first(result api.BuildResult) ([]byte, error) {
	if err := failed(result.Errors, result.Warnings); err != nil {
		return nil, err
	}
	if len(result.OutputFiles) != 1 {
		return nil, fmt.Errorf("%d files were made of one", len(result.OutputFiles))
	}
	return result.OutputFiles[0].Contents, nil
}

func failed(lists ...[]api.Message) error {
	var all []error
	for _, list := range lists {
		for _, m := range list {
			at := ""
			if m.Location != nil {
				at = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
			}
			all = append(all, errors.New(at+m.Text))
		}
	}
	return errors.Join(all...)
}

func pack(content []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return packed.Bytes(), nil
}
