package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

// prepared returns a release of the checkout that goes to a directory of the test's, and what is the same on all platforms.
func prepared(t *testing.T) (release, texts) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	r := release{root: root, out: t.TempDir(), version: "v1.2.3-rc.1", commit: strings.Repeat("c", 40), time: time.Unix(1_800_000_000, 0).UTC()}
	shared := texts{pages: map[string][]byte{"durward.8": []byte(".TH\n"), "durward-run.8": []byte(".TH\n")}, completions: make(map[string][]byte)}
	for _, shell := range shells {
		shared.completions[shell] = []byte("# " + shell + "\n")
	}
	if err := r.read(&shared); err != nil {
		t.Fatal(err)
	}
	return r, shared
}

// small returns a binary that takes no time to build and to pack.
func small(t *testing.T) binary {
	t.Helper()
	folder := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/small\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "small", ".")
	build.Dir = folder
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	content, err := os.ReadFile(filepath.Join(folder, "small"))
	if err != nil {
		t.Fatal(err)
	}
	return binary{platform{"linux", "arm64"}, content}
}

// debianParts returns the members of the two archives in a .deb, a line for each, and the contents of its files.
func debianParts(t *testing.T, packed []byte) (lines []string, contents map[string]string) {
	t.Helper()
	contents = make(map[string]string)
	rest, ok := bytes.CutPrefix(packed, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("it is no .deb")
	}
	for len(rest) >= 60 {
		name := strings.TrimRight(string(rest[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil {
			t.Fatal(err)
		}
		part := rest[60 : 60+size]
		rest = rest[60+size+size%2:]
		if !strings.HasSuffix(name, ".tar.gz") {
			continue
		}
		unpacked, err := gzip.NewReader(bytes.NewReader(part))
		if err != nil {
			t.Fatal(err)
		}
		for members := tar.NewReader(unpacked); ; {
			h, err := members.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(members)
			if err != nil {
				t.Fatal(err)
			}
			contents[h.Name] = string(content)
			lines = append(lines, fmt.Sprintf("%04o %s/%s %s", h.Mode, h.Uname, h.Gname, h.Name))
		}
	}
	return lines, contents
}

// TestPackage checks what a .deb has in it: every file with its owner and mode, and the configuration as one that an upgrade
// leaves alone. `UPDATE=1 go test` keeps what it has now.
func TestPackage(t *testing.T) {
	r, shared := prepared(t)
	const golden = "testdata/deb.golden"
	name, packed, err := r.packageOf(formats[0], binary{platform{"linux", "arm64"}, []byte("binary")}, shared, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if name != "durward_1.2.3~rc.1_arm64.deb" {
		t.Errorf("it is called %s", name)
	}
	lines, contents := debianParts(t, packed)
	listed := strings.Join(lines, "\n") + "\n"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(listed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || listed != string(want) {
		t.Errorf("%v, it has\n%s", err, listed)
	}
	if contents["./conffiles"] != "/etc/durward/Caddyfile\n" {
		t.Errorf("files that an upgrade leaves alone: %q", contents["./conffiles"])
	}
	for _, script := range []string{"preinst", "postinst", "prerm", "postrm"} {
		check := exec.CommandContext(t.Context(), "sh", "-n")
		check.Stdin = strings.NewReader(contents["./"+script])
		if output, err := check.CombinedOutput(); err != nil || contents["./"+script] == "" {
			t.Errorf("%s: %v: %s", script, err, output)
		}
	}
}

// TestPackagesAgree checks that both formats install the same, but for where a system looks for it.
func TestPackagesAgree(t *testing.T) {
	r, shared := prepared(t)
	var lists [2][]string
	for i, f := range formats {
		contents, err := r.contents(f, binary{content: []byte("binary")}, shared, nil, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range contents {
			line := fmt.Sprintf("%s %v %s", c.Type, c.FileInfo.Mode, c.Destination)
			lists[i] = append(lists[i], strings.NewReplacer(f.zsh, "ZSH", f.copyright, "COPYRIGHT").Replace(line))
		}
		slices.Sort(lists[i])
	}
	if len(lists[0]) < 10 || !slices.Equal(lists[0], lists[1]) {
		t.Errorf("%q\n%q", lists[0], lists[1])
	}
}

// TestUnit checks that the packaged unit is the repository's for the package's user, and that a unit in which that cannot be
// changed is noticed.
func TestUnit(t *testing.T) {
	_, shared := prepared(t)
	unit, err := packagedUnit(shared.unit)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"ExecStart=/usr/bin/durward run --config /etc/durward/Caddyfile", "\nUser=durward\n", "\nLoadCredential=durward_key:/etc/durward/credentials/durward_key\n", "\nProtectSystem=strict\n"} {
		if !strings.Contains(string(unit), line) {
			t.Errorf("it has no %q", line)
		}
	}
	if strings.Contains(string(unit), "DynamicUser") || strings.Contains(string(unit), "/usr/local") {
		t.Errorf("it is another installation's:\n%s", unit)
	}
	if _, err := packagedUnit(bytes.Replace(shared.unit, []byte("DynamicUser=yes"), []byte("User=gate"), 1)); err == nil {
		t.Error("a unit of another user was taken")
	}
}

// TestSameBytes checks that everything but the compiler makes the same bytes of the same commit, whoever runs it and where.
func TestSameBytes(t *testing.T) {
	r, shared := prepared(t)
	b := small(t)
	pack := func(zone string) map[string]string {
		t.Setenv("TZ", zone)
		t.Setenv("TMPDIR", t.TempDir())
		r.out = t.TempDir()
		if err := r.pack(b, shared); err != nil {
			t.Fatal(err)
		}
		if _, err := r.checksums(); err != nil {
			t.Fatal(err)
		}
		made := make(map[string]string)
		files, err := os.ReadDir(r.out)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(filepath.Join(r.out, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			made[file.Name()] = string(content)
		}
		return made
	}
	first, second := pack("Europe/Berlin"), pack("Asia/Tokyo")
	if len(first) != 5 {
		t.Errorf("%d files", len(first))
	}
	for name, content := range first {
		if second[name] != content {
			t.Errorf("%s differs", name)
		}
	}
}

// TestComponents checks that the list names what was linked into a binary, with the hashes of go.sum: this test's own.
func TestComponents(t *testing.T) {
	r, _ := prepared(t)
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := r.components(binary{platform{"linux", "amd64"}, content})
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat, SerialNumber string
		Components              []struct {
			Purl   string
			Hashes []struct{ Content string }
		}
		Dependencies []struct{ DependsOn []string }
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, purl := range []string{"pkg:golang/std@1.", "pkg:golang/aead.dev/minisign@v", "pkg:golang/github.com/goreleaser/nfpm/v2@v", "pkg:npm/preact@", "pkg:npm/%40preact/signals@"} {
		if !slices.ContainsFunc(list.Dependencies[0].DependsOn, func(ref string) bool { return strings.HasPrefix(ref, purl) }) {
			t.Errorf("it lacks %s", purl)
		}
	}
	for _, c := range list.Components {
		if strings.Contains(c.Purl, "nfpm") && (len(c.Hashes) != 1 || len(c.Hashes[0].Content) != 64) {
			t.Errorf("%s has the hashes %v", c.Purl, c.Hashes)
		}
	}
	if list.BOMFormat != "CycloneDX" || !strings.HasPrefix(list.SerialNumber, "urn:uuid:") {
		t.Errorf("it is %s %s", list.BOMFormat, list.SerialNumber)
	}
}

// TestSignature checks that a signature is good for the sums and for nothing else, and that a key that cannot be opened ends
// the release before it begins.
func TestSignature(t *testing.T) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := minisign.EncryptKey("secret", private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, locked, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadSigner(file, "wrong"); err == nil {
		t.Error("a wrong password was taken")
	}
	if _, err := loadSigner(file+"s", "secret"); err == nil {
		t.Error("a key that is not there was taken")
	}
	if sign, err := loadSigner("", ""); sign != nil || err != nil {
		t.Errorf("without a key: %v", err)
	}
	sign, err := loadSigner(file, "secret")
	if err != nil {
		t.Fatal(err)
	}
	sums := []byte("a sum\n")
	signature, err := sign(sums, time.Unix(1_800_000_000, 0), sumsFile)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := sign(sums, time.Unix(1_800_000_000, 0), sumsFile)
	if !minisign.Verify(public, sums, signature) || minisign.Verify(public, []byte("another\n"), signature) || !bytes.Equal(signature, again) {
		t.Errorf("the signature is not of the sums:\n%s", signature)
	}
}

// TestDescribe checks that only what is committed is released, under a version, with the time of the commit.
func TestDescribe(t *testing.T) {
	root := t.TempDir()
	git := func(arguments ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=n", "-c", "user.email=e@example.com"}, arguments...)...)
		command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
	}
	describe := func(version string, dirty bool) (release, error) {
		r := release{root: root, version: version}
		return r, r.describe(t.Context(), dirty)
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "--message", "one")
	r, err := describe("", false)
	if want := "v0.0.0-20260102030405-" + r.commit[:min(12, len(r.commit))]; err != nil || r.version != want || r.time.Format(time.RFC3339) != "2026-01-02T03:04:05Z" {
		t.Errorf("without a tag: %v, %s of %s", err, r.version, r.time)
	}
	git("tag", "v1.2.3")
	if r, err := describe("", false); err != nil || r.version != "v1.2.3" {
		t.Errorf("with a tag: %v, %s", err, r.version)
	}
	for _, version := range []string{"1.2.3", "v1.2", "v1.2.3+4", "v01.2.3", "v1.2.3 -X main.version=v2"} {
		if _, err := describe(version, false); err == nil {
			t.Errorf("%s was taken", version)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := describe("", false); err == nil || !strings.Contains(err.Error(), "?? new") {
		t.Errorf("what is not committed was released: %v", err)
	}
	if _, err := describe("", true); err != nil {
		t.Errorf("for a look: %v", err)
	}
}

// TestTitled checks that a manual page has its own title.
func TestTitled(t *testing.T) {
	page, err := titled("durward-run.8", []byte(".nh\n.TH \"Caddy\" \"8\" \"Nov 2026\" \"\" \"\"\n"))
	if err != nil || !strings.Contains(string(page), `.TH "DURWARD-RUN" "8" "Nov 2026"`) {
		t.Errorf("%v, %s", err, page)
	}
	if page, err := titled("durward.8", []byte(".TH \"Caddy\" \"8\"\n.SH NAME\ndurward -\n")); err != nil || !strings.Contains(string(page), "\ndurward - an edge gateway") {
		t.Errorf("%v, %s", err, page)
	}
	if _, err := titled("durward-run.8", []byte(".nh\n")); err == nil {
		t.Error("a page without a title was taken")
	}
}
